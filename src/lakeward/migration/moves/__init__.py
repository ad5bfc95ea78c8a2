"""Moves of Iceberg tables to where their datasets' names say: which, done one after the other, and taken back."""
