"""The command line: a thin layer over the Python API, with text and JSON output."""
