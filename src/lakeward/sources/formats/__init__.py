"""File formats. A format is one module with one `FileFormat`; discovery finds it by its `name` and `suffixes`."""
