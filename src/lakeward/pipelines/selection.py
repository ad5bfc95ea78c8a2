"""Which applied pipelines a build runs: `name`, `+name` with all upstream, `name+` with all downstream, `tag:x`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from lakeward.errors import UnknownObject
from lakeward.pipelines.graph import pipeline_edges
from lakeward.pipelines.spec import Pipeline

TAG = "tag:"


def select_pipelines(selectors: Sequence[str], pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the names of the pipelines that any of the selectors means, each once.

    A name that is written exactly like a pipeline's is that pipeline, also with a plus or `tag:` in it.

    Args:
        selectors: a name or `tag:` and a tag, with `+` before it for all that is upstream of it, and after it for all
            that is downstream.
        pipelines: the applied ones.

    Raises:
        UnknownObject: no pipeline has that name or tag, with the nearest one.

    Example:
        >>> select_pipelines([], [])
        []
    """
    upstream = pipeline_edges(pipelines)
    downstream = {name: tuple(each for each, before in upstream.items() if name in before) for name in upstream}
    tags: dict[str, list[str]] = {}
    for pipeline in pipelines:
        for tag in pipeline.spec.tags:
            tags.setdefault(tag, []).append(pipeline.name)
    found: dict[str, None] = {}
    for selector in selectors:
        before, after, meant = _read(selector, upstream, tags)
        found |= dict.fromkeys(meant)
        if before:
            found |= dict.fromkeys(_reached(meant, upstream))
        if after:
            found |= dict.fromkeys(_reached(meant, downstream))
    return list(found)


def _read(
    selector: str, upstream: Mapping[str, object], tags: Mapping[str, Sequence[str]]
) -> tuple[bool, bool, Sequence[str]]:
    """Return whether what is before and after it belongs to a selector, and which pipelines it names."""
    for before in (False, True):
        for after in (False, True):
            if selector.startswith("+" * before) and selector.endswith("+" * after):
                name = selector[before : len(selector) - after]
                if name in upstream:
                    return before, after, (name,)
                if name.startswith(TAG) and name.removeprefix(TAG) in tags:
                    return before, after, tags[name.removeprefix(TAG)]
    bare = selector.removeprefix("+").removesuffix("+")
    if bare.startswith(TAG):
        raise _unknown(f"no applied pipeline has the tag {bare.removeprefix(TAG)!r}", bare, [TAG + tag for tag in tags])
    raise _unknown(f"pipeline {bare!r} is not applied", bare, list(upstream))


def _unknown(reason: str, name: str, there: Sequence[str]) -> UnknownObject:
    near = difflib.get_close_matches(name, there, n=1)
    shown = ", ".join(sorted(there)) or "none"
    return UnknownObject(
        f"{reason}; there are {shown}",
        next_step=f"did you mean {near[0]}? If it is new: lakeward apply" if near else "lakeward apply",
        pipeline=name,
    )


def _reached(names: Iterable[str], edges: Mapping[str, Sequence[str]]) -> list[str]:
    """Return all that can be reached from some names."""
    waiting, found = list(names), set[str]()
    while waiting:
        new = [each for each in edges[waiting.pop()] if each not in found]
        found.update(new)
        waiting += new
    return sorted(found)
