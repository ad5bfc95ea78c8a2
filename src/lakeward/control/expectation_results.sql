-- name: keep
INSERT INTO lakeward.expectation_results
    (dataset_id, version, position, kind, text, definition, on_fail, outcome, refused, rows_checked, rows_failed, observed,
     message, samples)
VALUES (:dataset_id, :version, :position, :kind, :text, :definition, :on_fail, :outcome, :refused, :rows_checked,
        :rows_failed, :observed, :message, CAST(:samples AS jsonb));

-- name: kept
SELECT coalesce(max(position) + 1, 0) AS kept FROM lakeward.expectation_results
WHERE dataset_id = :dataset_id AND version = :version;

-- name: of_rows
-- What was found in the rows of a version. A copy between the arms, a compaction and a write that no row came for have
-- those of the version before them.
SELECT * FROM lakeward.expectation_results
WHERE dataset_id = :dataset_id
  AND version = (SELECT version FROM lakeward.dataset_transactions
                 WHERE dataset_id = :dataset_id AND version <= :version AND status = 'committed'
                   AND (kind = 'write' OR verb IN ('adopt', 'renumber')) AND (rows_in > 0 OR rows_deleted > 0)
                 ORDER BY version DESC LIMIT 1)
ORDER BY position;

-- name: judged
-- The newest versions of a dataset that an audit looked at, with what became of them.
SELECT r.*, t.status FROM lakeward.expectation_results r
JOIN lakeward.dataset_transactions t ON t.dataset_id = r.dataset_id AND t.version = r.version
WHERE r.dataset_id = :dataset_id AND (CAST(:version AS bigint) IS NULL OR r.version = :version)
  AND r.version IN (SELECT DISTINCT version FROM lakeward.expectation_results
                    WHERE dataset_id = :dataset_id ORDER BY version DESC LIMIT :most)
ORDER BY r.version DESC, r.position;
