-- name: stand
-- A waiter's place in the line of a dataset. Whoever stopped looking for a while has left it.
INSERT INTO lakeward.slot_waiters (dataset_id, alive_until)
VALUES (:dataset_id, clock_timestamp() + :alive_seconds * interval '1 second') RETURNING ticket;

-- name: stand_in_front
-- A place before all those who have a number above zero, which everybody else has.
INSERT INTO lakeward.slot_waiters (ticket, dataset_id, alive_until) OVERRIDING SYSTEM VALUE
VALUES (-nextval(pg_get_serial_sequence('lakeward.slot_waiters', 'ticket')), :dataset_id,
        clock_timestamp() + :alive_seconds * interval '1 second') RETURNING ticket;

-- name: still_there
UPDATE lakeward.slot_waiters SET alive_until = clock_timestamp() + :alive_seconds * interval '1 second'
WHERE ticket = :ticket RETURNING ticket;

-- name: leave
DELETE FROM lakeward.slot_waiters
WHERE ticket = :ticket OR (dataset_id = :dataset_id AND alive_until < clock_timestamp() - interval '1 hour');

-- name: backfill
-- The backfill that what is to be brought to an arm can't be done beside.
SELECT l.owner, extract(epoch FROM clock_timestamp() - l.acquired_at)::float8 AS age_seconds
FROM lakeward.dataset_transactions t JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE t.dataset_id = :dataset_id AND t.status = 'open' AND t.kind = 'backfill'
  AND (t.arm = :arm OR :kind = 'backfill');

-- name: holder
SELECT t.id, t.version, t.build_id, t.pipeline, t.writer, l.owner, l.fence,
       extract(epoch FROM clock_timestamp() - l.acquired_at)::float8 AS age_seconds,
       l.lease_until <= clock_timestamp() AS expired
FROM lakeward.dataset_transactions t JOIN lakeward.leases l ON l.transaction_id = t.id
WHERE t.dataset_id = :dataset_id AND t.status = 'open' AND t.kind <> 'backfill';
