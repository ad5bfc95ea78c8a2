"""What counts of a project's code: every file that is imported, and nothing of how it is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.python.code import code_parts, read_code
from lakeward.pipelines.python.loading import Code

FILES = {
    "lib/clean.py": "from lib.deep import inner\nfrom . import side\n\ndef f():\n    import lib.late as late\n"
    "    return inner.X + side.Y + late.Z\n",
    "lib/deep/__init__.py": "from .inner import X\n",
    "lib/deep/inner.py": "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    "from typing import ClassVar\n\n@dataclass\nclass Settings:\n    seen: ClassVar[int] = 1\n    x: int = 1\n\n"
    "X = Settings().x\n",
    "lib/side.py": "import json\nprint(json.dumps(1))\nfrom ..lib.deep import X\nY = 10 * X\n",
    "lib/late.py": "import lib\nimport lib.side\nZ = 10 * lib.side.Y\n",
    "lib/unused.py": "raise SystemExit\n",
}
IMPORTED = ["lib/clean.py", "lib/deep/__init__.py", "lib/deep/inner.py", "lib/late.py", "lib/side.py"]


def test_all_that_a_file_imports_is_kept_and_run_from_what_was_kept(
    write: Callable[[dict[str, str]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = write(FILES)
    code = read_code(root, "lib/clean.py")
    assert list(code) == IMPORTED
    for name in FILES:
        (root / name).write_text("raise RuntimeError('not the folder')\n")
    module = Code(code).run("lib/clean.py")
    assert module.f() == 111
    assert capsys.readouterr() == ("", "1\n"), "stdout is for what a command answers"
    assert not any(name == "lib" or name.startswith("lib.") for name in sys.modules)


def test_layout_does_not_count_and_everything_else_does() -> None:
    before = {"a.py": "X = 1\n\ndef f(a):\n    return [a, 'b']\n"}
    same = {"a.py": '# why\nX = (1)\n\n\ndef f( a ):\n    return [\n        a, "b",\n    ]  # what\n'}
    assert code_parts(before) == code_parts(same)
    for other in ("X = 1.0", "X = True", "X = '1'"):
        assert code_parts(before) != code_parts({"a.py": before["a.py"].replace("X = 1", other)})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"def f(:\n", r"lib/a\.py:1: not valid Python"),
        (b"x = 1\nreturn x\n", r"lib/a\.py:2: not valid Python: 'return' outside function"),
        (b"x = 1\ny = '\xff'\n", r"lib/a\.py:2: the file is not UTF-8"),
        (b"x = 1\ny = '\0'\n", r"lib/a\.py:2: the file has a NUL character"),
    ],
)
def test_what_is_no_python_is_told(write: Callable[[dict[str, str]], Path], text: bytes, says: str) -> None:
    root = write({"lib/b.py": "import lib.a\n"})
    (root / "lib" / "a.py").write_bytes(text)
    with pytest.raises(SpecError, match=says):
        read_code(root, "lib/b.py")


def test_a_link_out_of_the_project_is_refused(write: Callable[[dict[str, str]], Path], tmp_path: Path) -> None:
    root = write({"b.py": "import a\n"})
    (tmp_path / "outside.py").write_text("X = 1\n")
    (root / "a.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(SpecError, match=r"a\.py is a link out of the project"):
        read_code(root, "b.py")
