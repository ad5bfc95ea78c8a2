"""The kinds of jobs, one file each: adding a kind is adding a file."""
