"""File formats. A format is one module with one `FileConnector`; discovery finds it by its `name` and `suffixes`."""
