"""Catalogs: made, listed, renamed, dropped and brought back."""

from __future__ import annotations

from lakeward.server.level_routes import level_routes

router = level_routes("catalog")
