"""Databases. Each is one module with one `DatabaseConnector`; discovery finds it by its `name`."""
