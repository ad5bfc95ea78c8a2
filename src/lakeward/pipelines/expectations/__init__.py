"""The kinds of expectation, one file each."""
