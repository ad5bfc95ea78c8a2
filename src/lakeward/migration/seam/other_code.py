"""Finds accesses in other languages: string literals are read like SQL, and words outside of them are names.

This is a scan of tokens, no grammar. Comments that end are passed over; what is unclear counts.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from lakeward.migration.seam.sql import read_string
from lakeward.migration.seam.tables import Mention, Tables

_SLASHES = r"//[^\n]*|/\*.*?\*/"
# `$#`, `${#x}` of shells and `#{x}` of Ruby are no comments.
_HASH = r"(?<!\S)#(?!\{)[^\n]*"
_STRING = (
    r'(?P<long>""")(?P<in_long>(?:\\.|.)*?)"""'
    r"|(?P<single>''')(?P<in_single>(?:\\.|.)*?)'''"
    r'|"(?P<in_double>(?:\\.|[^"\\\n])*)"'
    r"|'(?P<in_quotes>(?:\\.|[^'\\\n])*)'"
    r"|`(?P<in_ticks>(?:\\.|[^`\\])*)`"
)
_WORD = r"(?P<word>\w+)"


def _lexer(comment: str) -> re.Pattern[str]:
    return re.compile(f"(?P<comment>{comment})|{_STRING}|{_WORD}", re.DOTALL)


_LIKE_C = _lexer(_SLASHES)
_LIKE_SHELL = _lexer(_HASH)
LANGUAGES = {
    "C": (_LIKE_C, ("c", "h")),
    "C++": (_LIKE_C, ("cc", "cpp", "hpp")),
    "C#": (_LIKE_C, ("cs",)),
    "Elixir": (_LIKE_SHELL, ("ex", "exs")),
    "Go": (_LIKE_C, ("go",)),
    "Groovy": (_LIKE_C, ("groovy",)),
    "Java": (_LIKE_C, ("java",)),
    "JavaScript": (_LIKE_C, ("js", "jsx", "cjs", "mjs")),
    "Kotlin": (_LIKE_C, ("kt", "kts")),
    "Perl": (_LIKE_SHELL, ("pl", "pm")),
    "PHP": (_LIKE_C, ("php",)),
    "R": (_LIKE_SHELL, ("r",)),
    "Ruby": (_LIKE_SHELL, ("rb",)),
    "Rust": (_LIKE_C, ("rs",)),
    "Scala": (_LIKE_C, ("scala",)),
    "shell": (_LIKE_SHELL, ("sh", "bash", "zsh")),
    "Swift": (_LIKE_C, ("swift",)),
    "TypeScript": (_LIKE_C, ("ts", "tsx")),
    "YAML": (_LIKE_SHELL, ("yaml", "yml")),
}
"""How each language is split into tokens, and the endings of its files' names in lower case."""

_LEXERS = {suffix: lexer for lexer, suffixes in LANGUAGES.values() for suffix in suffixes}
SUFFIXES = frozenset(_LEXERS)
_CONTENTS = ("in_long", "in_single", "in_double", "in_quotes", "in_ticks")


def read_other(text: str, suffix: str, tables: Tables) -> list[Mention]:
    """Return the accesses in source text of the language that a suffix stands for; of Python that is broken, too."""
    starts = tables.starts(text)
    found: list[Mention] = []
    for token in _LEXERS.get(suffix, _LIKE_SHELL).finditer(text):
        if token["word"] is not None:
            table = tables.find([token["word"]])
            if table is not None:
                found.append(Mention(bisect_left(starts, token.start()), "name", table))
            continue
        group = next((name for name in _CONTENTS if token[name] is not None), None)
        if group is not None:
            before = bisect_left(starts, token.start(group))
            inside = read_string(token[group], tables)
            found += [Mention(before + each.ordinal, each.kind, each.table) for each in inside]
    return found
