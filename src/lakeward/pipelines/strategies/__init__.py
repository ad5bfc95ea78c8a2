"""The strategies, one file each, found by discovery."""
