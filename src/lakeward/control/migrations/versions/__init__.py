"""One module per migration, in order; a landed one is never edited."""
