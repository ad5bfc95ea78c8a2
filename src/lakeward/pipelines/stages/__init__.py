"""The kinds of nodes that are no SQL, one file each, found by discovery."""
