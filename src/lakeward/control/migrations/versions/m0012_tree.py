"""The tree: old names of what was renamed, what is dropped and until when it can come back, and what is purged.

The statements stand in `m0012_tree.sql` and `m0012_tree_down.sql`, in the language that they are written in.
"""

from __future__ import annotations

from lakeward.control.migrations.script import run_script

revision = "m0012"
down_revision = "m0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, the marks and the view, and let slugs of what is purged be used again."""
    run_script(__file__)


def downgrade() -> None:
    """Take that back. What is dropped, or purged, is there again: called `dropped` and a number."""
    run_script(__file__, "_down")
