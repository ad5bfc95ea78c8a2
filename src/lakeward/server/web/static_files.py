"""The files that pages load: from this server alone, kept by browsers for as long as they are what they were."""

from __future__ import annotations

import gzip
import hashlib
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

STATIC = Path(__file__).parent / "static"

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Of what is served; nothing else is."""

FOREVER = "public, max-age=31536000, immutable"
SMALL = 1024
"""Bytes that are not worth to be packed."""


class StaticFile:
    """One file, read once.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.media_type = MEDIA_TYPES[path.suffix]
        self.body = path.read_bytes()
        self.etag = f'"{hashlib.sha256(self.body).hexdigest()[:24]}"'

    @cached_property
    def packed(self) -> bytes:
        """Its bytes as gzip; made when somebody first asks for them."""
        return gzip.compress(self.body, 6, mtime=0)


class StaticFiles:
    """All of them, under addresses that change whenever one of the files does.

    One name for all: so scripts can load each other by relative addresses.

    Args:
        directory: where they are.
    """

    def __init__(self, directory: Path = STATIC) -> None:
        paths = sorted(each for each in directory.rglob("*") if each.suffix in MEDIA_TYPES)
        self._files = {each.relative_to(directory).as_posix(): StaticFile(each) for each in paths}
        everything = "\n".join(f"{name} {file.etag}" for name, file in self._files.items())
        self.edition = hashlib.sha256(everything.encode()).hexdigest()[:12]

    def has(self, name: str) -> bool:
        """Say whether there is a file of that name; those of `vendor/` are there once `make setup` found npm."""
        return name in self._files

    def address(self, name: str) -> str:
        """Return where a file is.

        Raises:
            KeyError: there is none of that name.
        """
        self._files[name]
        return f"/static/{self.edition}/{quote(name)}"

    def answer(self, request: Request, edition: str, name: str) -> Response:
        """Return a file, or that the browser has it already."""
        file = self._files.get(name)
        if file is None:
            return Response(status_code=HTTPStatus.NOT_FOUND)
        # A page that was opened before the server was renewed asks for the files of then, and gets those of now.
        kept = FOREVER if edition == self.edition else "no-cache"
        headers = {"ETag": file.etag, "Cache-Control": kept, "Vary": "Accept-Encoding"}
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        if len(file.body) > SMALL and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
        return Response(file.body, media_type=file.media_type, headers=headers)


def static_router(files: StaticFiles) -> APIRouter:
    """Return the route of the files. They tell nothing of the workspace, and are for everybody."""
    router = APIRouter()

    @router.get("/static/{edition}/{name:path}")
    def static_file(request: Request, edition: str, name: str) -> Response:
        return files.answer(request, edition, name)

    return router
