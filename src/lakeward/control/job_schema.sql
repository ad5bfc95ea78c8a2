-- name: applied
-- The newest migration of procrastinate that our tables have seen.
SELECT name FROM lakeward.procrastinate_migration;

-- name: table
CREATE TABLE lakeward.procrastinate_migration (name text NOT NULL);

-- name: first
INSERT INTO lakeward.procrastinate_migration (name) VALUES (:name);

-- name: note
UPDATE lakeward.procrastinate_migration SET name = :name;

-- name: lock
-- One process at a time brings the tables up to date.
SELECT pg_advisory_xact_lock(:lock);
