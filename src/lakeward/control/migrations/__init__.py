"""The control plane's own schema, by Alembic: applied when a workspace is opened, never by hand."""
