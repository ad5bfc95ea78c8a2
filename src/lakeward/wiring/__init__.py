"""Puts the rooms together: settings, opening a workspace, and the handles that the public API returns."""
