"""Orders of commands as they are sent to a server."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any


def archive(*members: tuple[tarfile.TarInfo, bytes], **order: Any) -> bytes:
    """Return the archive of an order, by default for `status`, with more members behind it."""
    sink = io.BytesIO()
    content = json.dumps({"arguments": ["status"], **order}).encode()
    first = tarfile.TarInfo("order.json")
    first.size = len(content)
    with tarfile.open(fileobj=sink, mode="w") as opened:
        opened.addfile(first, io.BytesIO(content))
        for member, held in members:
            member.size = len(held)
            opened.addfile(member, io.BytesIO(held))
    return sink.getvalue()
