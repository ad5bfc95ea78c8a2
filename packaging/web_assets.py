"""Puts in place what the web page loads besides its own files, as `package-lock.json` pins it.

npm installs into a directory that is removed again, and runs no scripts of packages; of each, one minified file and its
licence are kept. A machine without npm gets a page without graphs and charts, and is told so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "src" / "lakeward" / "server" / "web" / "static" / "vendor"

FILES = {
    "htmx.js": ("htmx.org", "dist/htmx.min.js", "LICENSE"),
    "cytoscape.js": ("cytoscape", "dist/cytoscape.min.js", "LICENSE"),
    "cytoscape-dagre.js": ("cytoscape-dagre", "dist/cytoscape-dagre.min.js", "LICENSE"),
    "echarts.js": ("echarts", "dist/echarts.common.min.js", "LICENSE"),
}
"""What is kept, by what the page calls it: the package, its file, its licence."""

WITHOUT = "the web page works without it, but has no graphs and charts"


def install() -> str | None:
    """Put the files in place; return why that can't be done, or None."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is missing"
    with tempfile.TemporaryDirectory() as place:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(ROOT / name, place)
        found = subprocess.run([npm, "ci", "--ignore-scripts"], cwd=place, capture_output=True, text=True, check=False)
        if found.returncode:
            return f"npm ci failed: {(found.stderr or found.stdout).strip()[-500:]}"
        modules = Path(place) / "node_modules"
        shutil.rmtree(VENDOR, ignore_errors=True)
        VENDOR.mkdir(parents=True)
        for name, (package, file, licence) in FILES.items():
            shutil.copyfile(modules / package / file, VENDOR / name)
            shutil.copyfile(modules / package / licence, VENDOR / f"{name}.LICENSE")
        # The Apache licence of this one asks for it.
        shutil.copyfile(modules / "echarts" / "NOTICE", VENDOR / "echarts.js.NOTICE")
    return None


def main() -> int:
    """Install, and let the stamp that the Makefile names say so."""
    why = install()
    if why is not None:
        print(f"setup: {why}; {WITHOUT}", file=sys.stderr)
        return 0
    for stamp in sys.argv[1:]:
        Path(stamp).touch()
    print(f"setup: {len(FILES)} files of the web page from package-lock.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
