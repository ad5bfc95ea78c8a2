"""Takes the records out of a JSON file that can't be read, and tells what is wrong with each.

In an array, a value that is no right record is left out if its end is certain. Else each line is a record: one that is
no object is left out. So an object may not go over several lines here: where one of these was broken, it could not be
told where the next record begins, and a part of it could pass for one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lakeward.errors import SourceFileError
from lakeward.sources.formats.escaped_text import fault_of, unmarked
from lakeward.sources.formats.json_records import DECODER, Cutter, Number, RecordRefused, check_texts, may_go_on
from lakeward.sources.rejects import RECORD_CHARACTERS, Rejected, Rejects
from lakeward.sources.source_file import SourceFile

_SPACE = re.compile(r"[ \t\r\n]*")
# Takes what is refused elsewhere, to tell where it ends.
_ANY = json.JSONDecoder(parse_int=Number, parse_float=Number, strict=False)
_INSIDE = ('"', "}", "]", ",")
"""What a line begins with that is part of an object, unless it is a whole text."""


class Sieve(Cutter):
    """Gives the objects that are right.

    Args:
        file: the file.
        rejects: is told the others.
    """

    keeps_texts = True

    def __init__(self, file: SourceFile, rejects: Rejects) -> None:
        super().__init__(file)
        self._rejects = rejects

    def _object(self, final: bool) -> dict[str, Any] | None:
        return self._item(final) if self._in_array else self._line_object(final)

    def _item(self, final: bool) -> dict[str, Any] | None:
        try:
            return super()._object(final)
        except SourceFileError as error:
            try:
                _, end = _ANY.raw_decode(self._text, self._at)
            except json.JSONDecodeError as broken:
                if not final and may_go_on(broken, len(self._text)):
                    return None
                raise error from None
            except RecursionError:
                raise error from None
            if end == len(self._text) and not final:
                # A number may go on.
                return None
            text = self._text[self._at : end]
            return self._left_out(text, fault_of(text, "utf-8") or str(error.fields["reason"]), end)

    def _line_object(self, final: bool) -> dict[str, Any] | None:
        end = self._text.find("\n", self._at)
        if end < 0 and not final:
            return None
        end = len(self._text) if end < 0 else end
        text = self._text[self._at : end].rstrip()
        row: dict[str, Any]
        try:
            row, length = DECODER.raw_decode(text)
            if length < len(text):
                raise RecordRefused("a line break is expected between two objects")
            if not isinstance(row, dict):
                raise RecordRefused("an object is expected, one for each row")
            if "\\u" in text:
                check_texts(row)
        except json.JSONDecodeError as error:
            fault = fault_of(text, "utf-8")
            if fault is None and self._may_be_part(text, error) and self._goes_on(end, text, final):
                return None
            return self._left_out(text, fault or f"it is not JSON: {error.msg}", end)
        except RecordRefused as error:
            return self._left_out(text, str(error), end)
        except RecursionError:
            return self._left_out(text, "the object is nested too deep", end)
        self._took(end)
        return row

    def _may_be_part(self, text: str, error: json.JSONDecodeError) -> bool:
        return text.startswith(_INSIDE) or may_go_on(error, len(text))

    def _goes_on(self, end: int, text: str, final: bool) -> bool:
        """Tell whether more has to be read before it is certain that a line is a record of its own.

        Raises:
            SourceFileError: it is part of an object.
        """
        space = _SPACE.match(self._text, end)
        assert space is not None
        if space.end() == len(self._text) and not final:
            return True
        follows = self._text[space.end() : space.end() + 1]
        if text.startswith(_INSIDE) or (text.startswith("{") and follows.startswith(_INSIDE)):
            raise self._refused(
                "the line is part of an object; where records are to be left out, each stands on one line", self._at
            )
        return False

    def _left_out(self, text: str, reason: str, end: int) -> dict[str, Any]:
        self._rejects(Rejected(self._line, None, reason, shown(text)))
        self._took(end)
        return self.LEFT_OUT


def shown(text: str) -> str:
    """Return a record's text, shortened."""
    return unmarked(text[: 2 * RECORD_CHARACTERS])[:RECORD_CHARACTERS]
