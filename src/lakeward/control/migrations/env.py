"""Alembic's entry: runs the migrations on the connection that `lakeward.control.schema` hands over."""

from __future__ import annotations

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table_schema="lakeward", transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
