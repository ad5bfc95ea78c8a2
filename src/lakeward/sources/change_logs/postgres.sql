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

-- name: drop_slot
SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots WHERE slot_name = :name;
