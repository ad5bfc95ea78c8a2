"""The examples of README.md are run, in a directory of their own, and print what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_python_tour_prints_what_it_says(short_tmp: Path) -> None:
    (tour,) = blocks("python")
    promised = [comment.split("   (")[0].strip() for comment in re.findall(r"print\(.*\)\s+# (.*)", tour)]
    run = subprocess.run([sys.executable, "-c", tour], cwd=short_tmp, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == promised
    assert promised, "the tour prints something"


def test_the_command_line_tour_runs(short_tmp: Path) -> None:
    (tour,) = [block for block in blocks("sh") if "lakeward init" in block]
    entry = f'lakeward() {{ "{sys.executable}" -m lakeward.cli.app "$@"; }}\n'
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARD_")}
    run = subprocess.run(
        ["bash", "-euc", entry + tour], cwd=short_tmp, capture_output=True, text=True, timeout=300, env=environment
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "equal" in run.stdout


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
def test_the_make_targets_exist(target: str) -> None:
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_the_links_lead_somewhere(link: str) -> None:
    assert (Path(__file__).resolve().parents[2] / link).exists()
