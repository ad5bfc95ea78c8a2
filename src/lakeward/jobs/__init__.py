"""Work that is queued in Postgres and done by workers: builds, syncs, flips, upkeep; when asked for, or by time."""
