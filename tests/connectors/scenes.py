"""A source for each connector of the package, to run the conformance suite with."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from lakeward.sources.connectors.files import FilesSource
from lakeward.sources.connectors.postgres import PostgresSource
from lakeward.testing.connector_conformance import ConnectorScene, Row

CANARY = "c4nary-p4ss"
_numbers = itertools.count(1)


class PostgresScene(ConnectorScene):
    """A schema of its own in a database."""

    connector = PostgresSource
    secrets = (CANARY,)

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._table = f"t{next(_numbers)}"
        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE TABLE {self._table} (id int PRIMARY KEY, note text)")

    def options(self) -> Mapping[str, Any]:
        return {"url": self._url}

    def unreachable(self) -> Mapping[str, Any]:
        reference = self._folder / "url"
        reference.write_text(f"postgresql://me:{CANARY}@/x?host={self._folder}", encoding="utf-8")
        return {"url": f"file:{reference}"}

    @property
    def table(self) -> str:
        return f"public.{self._table}"

    def write(self, rows: Sequence[Row]) -> None:
        with psycopg.connect(self._url) as connection, connection.cursor() as cursor:
            with cursor.copy(f"COPY {self._table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


class FilesScene(ConnectorScene):
    """A folder that gets a file with each write."""

    connector = FilesSource
    # Files have no moment: each is listed when its table is read, and may not change while it is.
    one_moment = False

    def __init__(self, url: str, folder: Path) -> None:
        self._folder = folder

    def options(self) -> Mapping[str, Any]:
        return {"path": [f"{self._folder}/rows_*.csv"]}

    def unreachable(self) -> Mapping[str, Any]:
        return {"path": [f"rows={self._folder}/nowhere/*.csv"]}

    @property
    def table(self) -> str:
        return "rows"

    def write(self, rows: Sequence[Row]) -> None:
        text = "".join(f"{number},{note}\n" for number, note in rows)
        (self._folder / f"rows_{next(_numbers)}.csv").write_text(f"id,note\n{text}", encoding="utf-8")


SCENES = {scene.connector.name: scene for scene in (PostgresScene, FilesScene)}
