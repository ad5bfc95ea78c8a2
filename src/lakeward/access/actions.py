"""Every action that somebody may or may not do, with the lowest role that may: the one table of it.

An action is called like its line in the audit log, noun first. Of a noun that stands in the tree (`dataset`, `schema`,
`catalog`, `flip`, `move`, …) the role counts that somebody has there; of all others, the one for the whole workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lakeward.access.roles import Role

ACTIONS: Final[Mapping[str, Role]] = {
    # Rows, and what is told of them: history, schema, lineage, checksums, quality.
    "dataset.read": Role.VIEWER,
    "dataset.write": Role.BUILDER,
    # The tree.
    "dataset.create": Role.BUILDER,
    "dataset.rename": Role.BUILDER,
    "dataset.adopt": Role.OPERATOR,
    "dataset.copy": Role.OPERATOR,
    "dataset.edit": Role.BUILDER,
    "dataset.expect": Role.BUILDER,
    "dataset.keep": Role.BUILDER,
    "dataset.release": Role.BUILDER,
    "dataset.drop": Role.OPERATOR,
    "dataset.undrop": Role.OPERATOR,
    "dataset.purge": Role.OPERATOR,
    "schema.create": Role.BUILDER,
    "schema.rename": Role.OPERATOR,
    "schema.drop": Role.OPERATOR,
    "schema.undrop": Role.OPERATOR,
    "schema.purge": Role.OPERATOR,
    "catalog.create": Role.BUILDER,
    "catalog.rename": Role.OPERATOR,
    "catalog.drop": Role.OPERATOR,
    "catalog.undrop": Role.OPERATOR,
    "catalog.purge": Role.OPERATOR,
    # Where rows live.
    "flip.read": Role.VIEWER,
    "flip.run": Role.OPERATOR,
    "move.read": Role.VIEWER,
    "move.run": Role.OPERATOR,
    "move.home": Role.OPERATOR,
    "flag.read": Role.VIEWER,
    "flag.set": Role.OPERATOR,
    "flag.clear": Role.OPERATOR,
    "parity.check": Role.BUILDER,
    "parity.ignore": Role.OPERATOR,
    "parity.count": Role.OPERATOR,
    "ledger.adopt": Role.OPERATOR,
    "ledger.restore": Role.OPERATOR,
    # What makes rows.
    "pipeline.read": Role.VIEWER,
    "pipeline.apply": Role.BUILDER,
    "pipeline.remove": Role.BUILDER,
    "pipeline.build": Role.BUILDER,
    "source.read": Role.VIEWER,
    "source.add": Role.BUILDER,
    "source.sync": Role.BUILDER,
    "source.follow": Role.BUILDER,
    "source.unfollow": Role.BUILDER,
    "source.remove": Role.BUILDER,
    "model.read": Role.VIEWER,
    "model.add": Role.BUILDER,
    # Python of a project, and models that are code, run as the server.
    "code.run": Role.ADMIN,
    # The workspace.
    "ledger.read": Role.VIEWER,
    "ledger.recover": Role.OPERATOR,
    "maintenance.run": Role.OPERATOR,
    # Whatever the command needs is asked for besides.
    "command.run": Role.VIEWER,
    "job.read": Role.VIEWER,
    "job.run": Role.BUILDER,
    # What a job does is what whoever adds, cancels or begins it anew has to be allowed, by the action of its kind.
    "job.add": Role.VIEWER,
    "job.cancel": Role.VIEWER,
    "job.retry": Role.VIEWER,
    "audit.read": Role.OPERATOR,
    "metrics.read": Role.VIEWER,
    "doctor.read": Role.OPERATOR,
    "token.read": Role.ADMIN,
    "token.add": Role.ADMIN,
    "token.revoke": Role.ADMIN,
    "grant.read": Role.ADMIN,
    "grant.set": Role.ADMIN,
    "grant.remove": Role.ADMIN,
}
