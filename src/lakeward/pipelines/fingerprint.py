"""What a pipeline means, in one hash: equal for two files that differ only in layout, comments or the order of keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from lakeward.compute.predicate import check_predicate
from lakeward.compute.sql import canonical
from lakeward.pipelines.expectation import QUARANTINE
from lakeward.pipelines.expectation_spec import read_expectations
from lakeward.pipelines.nodes import JoinNode, SourceNode, SplitNode, StageNode, TransformNode
from lakeward.pipelines.python.code import code_parts
from lakeward.pipelines.spec import Pipeline

_JUDGING = "expectations of "


def fingerprint(pipeline: Pipeline) -> str:
    """Return the hash of `parts`, in hexadecimal; behind a dash, another one of those that only judge the rows."""
    every = parts(pipeline)
    judging = {part: text for part, text in every.items() if part.startswith(_JUDGING)}
    hashed = _hash({part: text for part, text in every.items() if part not in judging})
    return f"{hashed}-{_hash(judging)[:16]}" if judging else hashed


def with_models(fingerprint: str, versions: Sequence[str]) -> str:
    """Return a fingerprint with the versions, as `churn@3`, that a build found for models that are `@latest` in it."""
    return f"{fingerprint}+{', '.join(versions)}" if versions else fingerprint


def without_models(fingerprint: str) -> str:
    """Return the fingerprint that the pipeline was applied with."""
    return fingerprint.partition("+")[0]


def other_models(one: str, other: str) -> str | None:
    """Return the models of a fingerprint, if it differs from the other one only by them; None: it does not."""
    if without_models(one) != without_models(other) or one == other:
        return None
    return one.partition("+")[2] or None


def same_rows(one: str, other: str) -> bool:
    """Say whether two fingerprints are of pipelines that make equal rows of equal sources."""
    heads = {without_models(each).partition("-")[0] for each in (one, other)}
    return len(heads) == 1 and one.partition("+")[2] == other.partition("+")[2]


def _hash(facts: Mapping[str, str]) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def parts(pipeline: Pipeline) -> dict[str, str]:
    """Return what counts, by the name that a plan shows for it when it differs.

    Where an output is created (`arm`) does not count: after the first build its route decides.
    """
    found = {}
    for name, node in pipeline.spec.nodes.items():
        if isinstance(node, SourceNode):
            found[f"source {name}"] = node.source if node.window == "delta" else f"{node.source}, window {node.window}"
        elif isinstance(node, SplitNode):
            facts = {**node.split.model_dump(), "where": check_predicate(node.split.where)}
            found[f"node {name}"] = json.dumps(facts, sort_keys=True, ensure_ascii=False)
        elif isinstance(node, JoinNode):
            found[f"node {name}"] = json.dumps(node.join.model_dump(), sort_keys=True, ensure_ascii=False)
        elif isinstance(node, StageNode):
            # A version of a model never changes. How many rows it gets at a time counts: it may look at all of them.
            found[f"node {name}"] = node.meaning()
        elif isinstance(node, TransformNode):
            found[f"node {name}"] = canonical(node.transform)
    found |= code_parts(pipeline.spec.code)
    for output in pipeline.spec.outputs:
        output_facts = {
            "from": output.from_,
            "strategy": output.strategy,
            "primary_key": output.primary_key,
            "allow_empty": output.allow_empty,
        }
        found[f"output {output.dataset}"] = json.dumps(output_facts, sort_keys=True, ensure_ascii=False)
        for part, parting in ((f"{_JUDGING}{output.dataset}", False), (f"quarantine of {output.dataset}", True)):
            judged = [
                [each.on_fail, each.definition()]
                for each in read_expectations(output.expectations, (), pipeline.origin)
                if (each.on_fail == QUARANTINE) is parting
            ]
            if judged:
                found[part] = json.dumps(judged, ensure_ascii=False)
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what is added, removed and changed between two results of `parts`, in words."""
    words = [f"{part} added" for part in after if part not in before]
    words += [f"{part} removed" for part in before if part not in after]
    words += [f"{part} changed" for part in after if part in before and before[part] != after[part]]
    return words
