"""The arms: one file or package for each place where rows can live, found by discovery."""
