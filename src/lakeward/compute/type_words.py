"""Columns whose names the parser takes for the beginning of a type, as `range` in `range < 5`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType


def quoting(tokens: Sequence[Token]) -> str | None:
    """Return the hint to quote such a column, if there is one in a text that can't be parsed.

    The engine's own parser would read it. But a text that only one of the two parsers reads is not let through.
    """
    for token, following in pairwise(tokens):
        if token.token_type in DuckDBParser.NESTED_TYPE_TOKENS and following.token_type == TokenType.LT:
            return f'if {token.text} is a column, write its name in quotes: "{token.text}" <'
    return None
