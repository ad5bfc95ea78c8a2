"""Writes the tables of `docs/sources.md` from the connectors, sync modes and types. A test fails if they are stale.

python docs/make_sources_page.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from lakeward.sources.connectors.postgres_types import table_of_types
from lakeward.sources.known_connectors import known_connectors
from lakeward.wiring.sync_modes import MODES

PAGE = Path(__file__).with_name("sources.md")


def sections() -> dict[str, str]:
    """Return each table, by the name of its mark."""
    options = [
        (name, option, field.description)
        for name, connector in known_connectors().items()
        for option, field in connector.options.model_fields.items()
    ]
    modes = [(mode.name, mode.about, mode.keyed, mode.keyless or "refused") for mode in MODES.values()]
    return {
        "options": _table(("type", "option", "meaning"), options),
        "modes": _table(("mode", "reads", "with a key", "without one"), modes),
        "types": _table(("PostgreSQL", "here", ""), table_of_types()),
    }


def page() -> str:
    """Return the whole page with fresh tables."""
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in sections().items():
        mark = f"<!-- {name}: written by docs/make_sources_page.py -->\n"
        text = re.sub(
            f"({re.escape(mark)}).*?(<!-- end -->)",
            lambda found, new=rows: found[1] + new + found[2],
            text,
            flags=re.DOTALL,
        )
    return text


def _table(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
