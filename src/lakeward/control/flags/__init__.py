"""Flags: how writers make datasets, and which arm readers prefer. The route alone says where a dataset's rows are."""
