"""The stage before all others, which says what would become of the real values."""

from __future__ import annotations

from lakeward.migration.checking import check, columns_of
from lakeward.migration.stage import Details, FlipContext, Stage


class Check(Stage):
    """Reads all rows, says of each column what would become of it on the other arm, and if that can take it."""

    name = "check"
    position = 10

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset, to = context.dataset, context.direction.to
        if self.done(context):
            return ["nothing: the columns are those that were checked, and what is written since is fit for every arm"]
        return [
            f"read all {dataset.row_count:,} rows of version {dataset.head_version}, judge each as a write does",
            f"look whether the {to} arm can be reached and written to, and has room",
        ]

    def done(self, context: FlipContext) -> bool:
        """Say whether this flip has checked these columns, or the other arm has the rows already.

        A newer head needs no check of its own: what a writer brings is let in only if every arm keeps it exactly. Rows
        that another engine wrote, and that were adopted since, are judged once more while they are copied.
        """
        dataset = context.dataset
        if not dataset.head_version or context.rooms.replication.lag(dataset, context.direction.to).has_rows:
            return True
        checked = context.details(self.name).get("columns") == columns_of(dataset.schema)
        return checked and context.noted(self.name)

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`.

        Raises:
            ValueRefused: a value would not survive, with the rows by key.
            StorageError: the other arm can't take the dataset.
        """
        found = check(context.rooms, context.dataset, context.direction, context.tell)
        found.refuse()
        told: Details = {"columns": columns_of(context.dataset.schema)}
        if found.certificate is not None:
            lossy = [column.column for column in found.certificate.columns if column.verdict == "lossy"]
            told |= {"version": found.certificate.version, "rows": found.certificate.rows, "lossy": lossy or "nothing"}
        if found.expectation is not None:
            told |= {"expected_seconds": round(found.expectation.seconds, 3), "basis": found.expectation.basis}
        return told

    def undo(self, context: FlipContext) -> list[str]:
        """Do nothing: it changed nothing."""
        return []
