"""Whether the arms that hold a version hold the same rows: their digests, beside each other."""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.errors import ParityMismatch
from lakeward.types.digest import Digest


@dataclass(frozen=True)
class Parity:
    """The digests of one version on each arm that holds it."""

    dataset: str
    version: int
    digests: dict[str, Digest]
    recorded: Digest | None = None
    """The digest that was found when the version was first looked at."""

    @property
    def equal(self) -> bool:
        """Whether all arms agree (one alone does), also with what was recorded."""
        recorded = {self.recorded} if self.recorded is not None else set()
        return len(recorded.union(self.digests.values())) <= 1

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "equal": self.equal,
            "digests": {arm: str(digest) for arm, digest in self.digests.items()},
            "recorded": str(self.recorded) if self.recorded is not None else None,
        }

    def mismatch(self) -> ParityMismatch:
        """Return the error of arms that differ, or of rows that are not what they were."""
        shown = ", ".join(f"{arm} {digest}" for arm, digest in self.digests.items())
        shown += f", recorded before {self.recorded}" if self.recorded is not None else ""
        what = "the arms differ" if len(set(self.digests.values())) > 1 else "the rows are not what they were"
        return ParityMismatch(
            f"dataset {self.dataset}, version {self.version}: {what}: {shown}",
            safe="nothing was changed; readers are served by the primary arm as before",
            next_step=f"`lakeward dataset show {self.dataset}` says which arm that is",
            dataset=self.dataset,
            version=self.version,
            digests={arm: str(digest) for arm, digest in self.digests.items()},
        )
