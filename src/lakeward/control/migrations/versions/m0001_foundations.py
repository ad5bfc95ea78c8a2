"""The first schema: the tree of names, the ledger with its leases, routes, rows, pipelines and the logs.

The statements stand in `m0001_foundations.sql`, in the language that they are written in.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from lakeward.control.migrations.script import run_script
from lakeward.errors import ControlError

revision = "m0001"
down_revision = None
branch_labels = None
depends_on = None

# Names are compared after lower-casing, which needs a Unicode-aware collation; each server build has another one.
_COLLATIONS = ("und-x-icu", "pg_c_utf8", "C.utf8", "C.UTF-8")


def upgrade() -> None:
    """Create everything, with the best collation that this server has."""
    connection = op.get_bind()
    present = set(
        connection.execute(
            text("select collname from pg_catalog.pg_collation where collencoding in (-1, 6)"),
        ).scalars()
    )
    collation = next((name for name in _COLLATIONS if name in present), "default")
    run_script(__file__, values={"unicode_collation": f'pg_catalog."{collation}"'})


def downgrade() -> None:
    """Refuse: a workspace's data is not thrown away by a migration."""
    raise ControlError("the first migration can't be undone", next_step="restore a backup of the database")
