"""Logical types, schemas and the digest: the one place that says how a value of each type is stored and compared."""
