"""`lakeward dataset edit` and `undo-edit`: the editor is a script; what it leaves is shown, asked about and written."""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from support.commands import Run

NAME = "shop.raw.plans"
Script = Callable[[str], None]


class Typed(io.StringIO):
    """A terminal at which somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def editor(place: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Makes a script the editor; its Python has the file's `path` and `text`. What is edited is in `place`/kept."""
    (place / "kept").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place / "kept"))

    def set_editor(body: str) -> None:
        head = "import pathlib, sys\npath = pathlib.Path(sys.argv[-1])\ntext = path.read_text()\n"
        (place / "an editor.py").write_text(head + body)
        monkeypatch.setenv("VISUAL", f"{sys.executable} -S '{place / 'an editor.py'}'")

    return set_editor


@pytest.fixture
def plans(run: Run, place: Path) -> str:
    """A dataset with two rows at version 1."""
    (place / "plans.csv").write_text('id,name,price\n1,basic,9.50\n2,"",20.00\n')
    declared = ("--column", "id=long", "--column", "name=string", "--column", "price=decimal(9,2)", "--key", "id")
    assert run("dataset", "import", NAME, "plans.csv", *declared).code == 0
    return NAME


def kept(place: Path) -> list[Path]:
    return sorted((place / "kept").rglob("*.csv"))


def test_what_the_editor_leaves_is_shown_and_written(run: Run, place: Path, plans: str, editor: Script) -> None:
    editor("path.write_text(text.replace('9.50', '8.00').replace('2,\"\",20.00', '3,pro,'))")
    looked = run("dataset", "edit", plans, "--dry-run")
    assert looked.out.splitlines()[:4] == [
        "+ id='3', name='pro', price=null",
        "~ id='1': price: '9.50' → '8.00'",
        "- id='2', name='', price='20.00'",
        "1 row added, 1 changed, 1 removed",
    ]
    # A dry run keeps the file: what it shows can be written from there.
    [path] = kept(place)
    assert f"--from {path} --version 1" in looked.out
    done = run("dataset", "edit", plans, "--from", path, "--version", "1", "--yes")
    assert (done.code, done.err) == (0, "")
    assert f"dataset {plans} is at version 2 with 2 rows" in done.out
    assert f"Next: lakeward dataset undo-edit {plans} 2" in done.out
    assert re.search(r"^ +2 .* changes .* manual\.table \(\w+\) ", run("dataset", "history", plans).out, re.MULTILINE)
    path.unlink()
    # The script finds nothing more to do: no version, and the file goes.
    same = run("dataset", "edit", plans, "--yes", "--output", "json").document
    assert (same["committed"], same["version"], same["changed"]) == (False, 2, [])
    assert kept(place) == []
    undone = run("dataset", "undo-edit", plans, "--yes", "--output", "json").document
    assert (undone["version"], undone["rows_added"], undone["rows_updated"], undone["rows_deleted"]) == (3, 1, 1, 1)
    assert "name=''" in run("dataset", "undo-edit", plans, "2", "--dry-run").out
    assert run("dataset", "undo-edit", plans, "1", "--yes").code == 2


def test_an_edit_wants_a_yes(run: Run, plans: str, editor: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    editor("path.write_text(text + '3,pro,1.00\\n')")
    asked = run("dataset", "edit", plans, "--output", "json")
    assert asked.code == 2 and "nobody is asked" in asked.document["message"]
    monkeypatch.setattr(sys, "stdin", Typed("no\n"))
    refused = run("dataset", "edit", plans)
    assert refused.code == 2 and "+ id='3'" in refused.out and "the edited file is kept: " in refused.err
    monkeypatch.setattr(sys, "stdin", Typed("yes\n"))
    assert "is at version 2 with 3 rows" in run("dataset", "edit", plans).out


def test_the_editor_opens_again_on_what_cannot_be_read(
    run: Run, place: Path, plans: str, editor: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor("path.write_text(text.replace('cheap', '8.00') if 'cheap' in text else text.replace('9.50', 'cheap'))")
    refused = run("dataset", "edit", plans, "--yes")
    assert refused.code == 1 and "line 2, column 'price': 'cheap' is not a decimal(9,2)" in refused.err
    [path] = kept(place)
    assert f"the edited file is kept: {path}" in refused.err and "cheap" in path.read_text()
    monkeypatch.setattr(sys, "stdin", Typed("y\n"))
    done = run("dataset", "edit", plans, "--yes")
    assert done.code == 0 and "line 2, column 'price': 'cheap'" in done.err and "'9.50' → '8.00'" in done.out
    assert kept(place) == [path], "that of the edit which was refused before"


def test_rows_that_others_changed_meanwhile_are_named_and_the_file_is_kept(
    run: Run, place: Path, plans: str, editor: Script, opened: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = opened.dataset(plans)

    class WhileAsked(Typed):
        """Somebody who thinks it over, while others write."""

        def readline(self, size: int | None = -1, /) -> str:
            dataset.write([{"id": 1, "name": "theirs", "price": None}], mode="upsert")
            return "yes\n"

    monkeypatch.setattr(sys, "stdin", WhileAsked())
    editor("path.write_text(text.replace('basic', 'mine'))")
    refused = run("dataset", "edit", plans)
    assert refused.code == 6 and "~ id='1': name: 'basic' → 'mine'" in refused.out
    assert "id='1': now name='theirs', price=null, yours name='mine', price='9.50'" in refused.err
    [path] = kept(place)
    assert f"the edited file is kept: {path}; `lakeward dataset edit {plans} --from {path} --version 1`" in refused.err
    assert "mine" in path.read_text()
    assert (dataset.version, dataset.preview()["name"].to_pylist()) == (2, ["theirs", ""])


def test_a_file_goes_out_and_comes_back_without_an_editor(
    run: Run, place: Path, plans: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ("dataset", "edit", plans, "--export", "mine.csv")
    assert "2 rows of shop.raw.plans version 1" in run(*out, "--dry-run").out and not (place / "mine.csv").exists()
    assert "dataset edit shop.raw.plans --from mine.csv --version 1" in run(*out).out
    assert (place / "mine.csv").read_text() == 'id,name,price\n1,basic,9.50\n2,"",20.00\n'
    assert run(*out).code == 2, "it is there already"
    back = ("dataset", "edit", plans, "--from", "mine.csv")
    assert "--from needs --version" in run(*back).err
    assert "it needs --from" in run("dataset", "edit", plans, "--version", "1").err
    assert run(*back, "--version", "1", "--export", "x.csv").code == 2
    assert "it has 2 rows, and 1 can be edited" in run(*back, "--version", "1", "--max-rows", "1").err
    assert "nothing was changed" in run(*back, "--version", "1").out
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    assert "no editor is named" in run("dataset", "edit", plans).err
    monkeypatch.setenv("EDITOR", "/nowhere/ed")
    assert "/nowhere/ed can't be started" in run("dataset", "edit", plans).err
    monkeypatch.setenv("EDITOR", "false")
    failed = run("dataset", "edit", plans)
    assert failed.code == 2 and "ended with exit code 1" in failed.err
