-- name: of
SELECT abilities FROM lakeward.catalog_abilities WHERE catalog = :catalog;

-- name: keep
INSERT INTO lakeward.catalog_abilities (catalog, abilities) VALUES (:catalog, CAST(:abilities AS jsonb))
ON CONFLICT (catalog) DO UPDATE SET abilities = excluded.abilities, probed_at = clock_timestamp();
