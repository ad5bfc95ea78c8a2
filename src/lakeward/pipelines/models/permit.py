"""What a user says of a model's file that is added, besides what it is: its hash, and that it may be a pickle."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from lakeward.errors import ModelRefused, UsageError
from lakeward.pipelines.models.content import is_pickle, what_is

PICKLE = "pickle"
PERMITTING = "--format pickle --allow-pickle --sha256 HEX"


@dataclass(frozen=True)
class Permit:
    """What is said of a file.

    Args:
        format: `pickle`; None: what it is is told by its content, and a pickle is refused.
        allow_pickle: whether a pickle may be taken; needed with that format, and only there.
        sha256: of the file, in hexadecimal; needed for a pickle.
    """

    format: str | None = None
    allow_pickle: bool = False
    sha256: str | None = None

    def check_hash(self, content: bytes, what: str) -> None:
        """Refuse a file with another hash than the one that was told, if any.

        Raises:
            ModelRefused: it has another one.
        """
        found = hashlib.sha256(content).hexdigest()
        if self.sha256 is not None and self.sha256.strip().lower() != found:
            raise ModelRefused(
                f"{what} has the sha256 {found}, and {self.sha256} was told",
                safe="it was not loaded, and no model was added",
                next_step="get the file again from where the hash comes from",
            )

    def pickle(self, content: bytes, what: str) -> bool:
        """Say whether a file is to be taken as a pickle. All three have to be told: none of them happens by mistake.

        Raises:
            UsageError: only some of them are, or the format is no such thing.
            ModelRefused: the file is no pickle.
        """
        if self.format not in (None, PICKLE):
            raise UsageError(f"--format {self.format}: only pickle is named", next_step="leave --format out")
        if self.format is None and not self.allow_pickle:
            return False
        if self.format is None or not self.allow_pickle or self.sha256 is None:
            raise UsageError(
                "a pickle runs whatever it says when it is loaded; it is taken only with its format, its hash and "
                "--allow-pickle",
                safe="no model was added",
                next_step=f"write {PERMITTING}, with the hash from whoever made the file",
            )
        if not is_pickle(content):
            raise ModelRefused(
                f"{what} is {what_is(content)}, and no pickle",
                safe="it was not loaded, and no model was added",
                next_step="leave --format out; what it is is told by its content",
            )
        return True


NOTHING_PERMITTED = Permit()
