-- name: line
INSERT INTO lakeward.audit_log (actor, action, subject, before, after)
VALUES (:actor, :action, :subject, CAST(:before AS jsonb), CAST(:after AS jsonb));
