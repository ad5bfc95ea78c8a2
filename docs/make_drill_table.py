"""Runs the drill and writes its table into `docs/reliability.md`, with the commit that it was run on.

python docs/make_drill_table.py [--rounds 200 --seed 1 …]      the arguments are those of `lakeward ledger drill`
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("reliability.md")
BEGIN = "<!-- drill: written by docs/make_drill_table.py -->\n"
END = "<!-- /drill -->\n"


def commit() -> str:
    """Return the commit that is checked out, and say so if files differ from it."""
    git = ["git", "-c", "safe.directory=*", "-C", str(PAGE.parent)]
    name = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True).stdout
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", "../src"], capture_output=True, text=True, check=True
    ).stdout
    return name.strip() + (", with changes that are not committed" if changed else "")


def page(table: str, where: str) -> str:
    """Return the page with another table."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\nRun on commit {where}.\n\n{table}\n{END}{after}"


def main() -> int:
    """Run the drill; the page is written even if promises were broken, and the drill's exit code is returned."""
    where = commit()
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "table.md"
        drill = [sys.executable, "-m", "lakeward.cli.app", "ledger", "drill", "--markdown", str(file), *sys.argv[1:]]
        code = subprocess.run(drill, check=False).returncode
        if file.exists():
            PAGE.write_text(page(file.read_text(encoding="utf-8"), where), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
