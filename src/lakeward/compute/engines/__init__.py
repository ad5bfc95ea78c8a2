"""The engines, one file each, found by discovery."""
