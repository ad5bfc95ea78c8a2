-- name: slot
-- A standby has the log up to what it received.
SELECT s.active, s.wal_status = 'lost' OR s.restart_lsn IS NULL AS lost,
       CAST(pg_catalog.pg_wal_lsn_diff(s.confirmed_flush_lsn, '0/0') AS bigint) AS confirmed,
       CAST(coalesce(pg_catalog.pg_wal_lsn_diff(now.place, s.restart_lsn), 0) AS bigint) AS lag_bytes,
       CAST(pg_catalog.pg_wal_lsn_diff(now.place, '0/0') AS bigint) AS now
FROM pg_catalog.pg_replication_slots s,
     (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_receive_lsn()
                  ELSE pg_catalog.pg_current_wal_lsn() END AS place) AS now
WHERE s.slot_name = :name AND s.database = pg_catalog.current_database();

-- name: reader
-- Who reads a slot; a user sees those of its own sessions.
SELECT r.application_name AS name, CAST(r.client_addr AS text) AS address, r.backend_start AS since
FROM pg_catalog.pg_replication_slots s JOIN pg_catalog.pg_stat_replication r ON r.pid = s.active_pid
WHERE s.slot_name = :name;

-- name: begins
-- Whether nobody else begins this log now, until the session ends.
SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(:name, 0)) AS alone;

-- name: drop_slot
SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots WHERE slot_name = :name;
