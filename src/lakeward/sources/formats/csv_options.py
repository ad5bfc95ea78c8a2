"""How a CSV file is written down. Nothing of it is guessed from the file."""

from __future__ import annotations

import codecs

from pydantic import Field, model_validator

from lakeward.errors import SettingsError
from lakeward.sources.file_format import FormatOptions

DELIMITERS = (";", "\t", "|", ",")
"""What separates the fields of most files."""

ENCODINGS = ("utf-8", "utf-16", "latin-1")
_CODECS = {codecs.lookup(name).name: name for name in ENCODINGS}


class CsvOptions(FormatOptions):
    """The dialect of a CSV file.

    Raises:
        SettingsError: an option can't be meant.
    """

    delimiter: str = Field(default=",", description="One ASCII character between fields.")
    quote: str = Field(default='"', description="One ASCII character around fields; inside it is doubled.")
    header: bool = Field(
        default=True, description="Whether the first record names the columns; without, they are `column1`, `column2` …"
    )
    null_markers: tuple[str, ...] = Field(
        default=(), description="Unquoted fields that mean null, besides the empty one. A quoted field is never null."
    )
    encoding: str = Field(default="utf-8", description="`utf-8` or `utf-16` (with a byte-order mark), or `latin-1`.")

    @model_validator(mode="after")
    def _can_be_meant(self) -> CsvOptions:
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
        return self


class TsvOptions(CsvOptions):
    """The dialect of a TSV file: tabs between fields."""

    delimiter: str = Field(default="\t", description="One ASCII character between fields.")
