"""The stages of a flip, one file each."""
