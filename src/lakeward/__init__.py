"""Lakeward: SQL pipelines over datasets that live as Postgres rows or Iceberg tables, and move between the two."""
