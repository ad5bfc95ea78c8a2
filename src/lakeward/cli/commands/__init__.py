"""The commands, one per file; `register` adds each to the tree."""
