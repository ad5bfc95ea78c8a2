"""How a CSV file is written down. Nothing of it is guessed from the file."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from lakeward.errors import SettingsError

ENCODINGS = ("utf-8", "utf-16", "latin-1")
_CODECS = {codecs.lookup(name).name: name for name in ENCODINGS}


@dataclass(frozen=True)
class CsvOptions:
    """The dialect of a CSV file.

    Args:
        delimiter: one ASCII character between fields.
        quote: one ASCII character around fields; inside it is doubled.
        header: whether the first record holds the column names. Without, they are `column1`, `column2` …
        null_markers: unquoted fields that mean null, besides the empty one. A quoted field is never null.
        encoding: `utf-8` or `utf-16` (with a byte-order mark), or `latin-1`.

    Raises:
        SettingsError: an option can't be meant.
    """

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null_markers: tuple[str, ...] = ()
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for option, value in (("delimiter", self.delimiter), ("quote", self.quote)):
            if len(value) != 1 or not value.isascii() or value in "\r\n\0":
                raise SettingsError(
                    f"CSV {option} {value!r} is not one ASCII character other than a line break", option=option
                )
        if self.delimiter == self.quote:
            raise SettingsError(f"CSV delimiter and quote are both {self.quote!r}", option="quote")
        try:
            encoding = _CODECS[codecs.lookup(self.encoding).name]
        except (LookupError, ValueError):
            raise SettingsError(
                f"CSV encoding {self.encoding!r} is not one of {', '.join(ENCODINGS)}", option="encoding"
            ) from None
        # Frozen, so that options can be shared; the one spelling is set here.
        object.__setattr__(self, "encoding", encoding)
        object.__setattr__(self, "null_markers", tuple(self.null_markers))
