"""Events come to a receiver in OpenLineage's own form: begin and end of a build, its datasets, columns and rows."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

from lakeward.errors import ExpectationFailed, SettingsError
from support.receiver import Opens, Receiver


def parsed(document: dict[str, Any]) -> RunEvent:
    """Let OpenLineage's own model look at it: it checks ids, times and addresses."""
    return RunEvent(
        eventType=RunState(document["eventType"]),
        eventTime=document["eventTime"],
        run=Run(document["run"]["runId"], document["run"]["facets"]),
        job=Job(**document["job"]),
        inputs=[InputDataset(**each) for each in document["inputs"]],
        outputs=[OutputDataset(**each) for each in document["outputs"]],
        producer=document["producer"],
    )


def sent(receiver: Receiver) -> list[dict[str, Any]]:
    assert {path for path, _, _ in receiver.got} == {"/api/v1/lineage"}
    found = [json.loads(body) for _, _, body in receiver.got]
    receiver.got.clear()
    return found


def test_a_build_begins_and_ends_with_what_it_read_and_wrote(opens: Opens, receiver: Receiver) -> None:
    settings = f'openlineage_url = "{receiver.url}"\nopenlineage_namespace = "shop"\nopenlineage_key = "key-1"'
    with opens(settings) as workspace:
        workspace.build("totals", full=True)
        assert workspace.build("totals")[0].up_to_date
    assert {headers["Authorization"] for _, headers, _ in receiver.got} == {"Bearer key-1"}
    documents = sent(receiver)
    begun, done = map(parsed, documents)
    assert [begun.eventType, done.eventType] == [RunState.START, RunState.COMPLETE]
    assert begun.run.runId == done.run.runId
    assert (done.job.namespace, done.job.name) == ("shop", "totals")
    (read,), (written,) = documents[1]["inputs"], documents[1]["outputs"]
    assert (read["name"], read["facets"]["version"]["datasetVersion"]) == ("main.told.orders", "1")
    assert [each["name"] for each in read["facets"]["schema"]["fields"]] == ["customer", "amount"]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert written["facets"]["schema"]["fields"][0]["type"] == "string"
    lineage = written["facets"]["columnLineage"]["fields"]
    assert [each["field"] for each in lineage["total"]["inputFields"]] == ["amount"]
    assert lineage["customer"]["inputFields"] == [
        {"namespace": "shop", "name": "main.told.orders", "field": "customer", "transformations": []}
    ]


def test_a_build_that_fails_says_why(opens: Opens, receiver: Receiver) -> None:
    with opens(f'openlineage_url = "{receiver.url}"') as workspace:
        workspace.dataset("main.told.orders").write([{"customer": "c", "amount": 5000}])
        with pytest.raises(ExpectationFailed):
            workspace.build("totals")
        workspace.dataset("main.told.orders").write([{"customer": "c", "amount": 1}], mode="replace")
    begun, failed = sent(receiver)
    assert (begun["eventType"], failed["eventType"]) == ("START", "FAIL")
    assert "total < 1000" in failed["run"]["facets"]["errorMessage"]["message"]


def test_events_can_go_to_a_file(opens: Opens, tmp_path: Path) -> None:
    file = tmp_path / "made" / "events.jsonl"
    with opens(f'openlineage_url = "file://{file}"') as workspace:
        workspace.run("select * from main.told.orders", into="main.told.copy")
    begun, done = [parsed(json.loads(line)) for line in file.read_text().splitlines()]
    assert (begun.eventType, done.eventType) == (RunState.START, RunState.COMPLETE)


def test_a_receiver_that_is_gone_costs_the_build_nothing(
    opens: Opens, closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lakeward.telemetry"):
        with opens(f'openlineage_url = "http://127.0.0.1:{closed_port}"') as workspace:
            assert workspace.build("totals")[0].build_id is not None
    assert "an event of pipeline totals is lost" in caplog.text


@pytest.mark.parametrize("url", ["receiver:5000", "ftp://x/y", "http://"])
def test_an_address_that_is_none_is_refused(url: str, opens: Opens) -> None:
    with pytest.raises(SettingsError, match=r"telemetry\.openlineage_url"):
        opens(f'openlineage_url = "{url}"')


@pytest.mark.parametrize("setting", ["otlp_endpoint", "openlineage_url"])
def test_without_the_extra_the_error_names_it(setting: str, opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="opentelemetry")

    monkeypatch.setattr("lakeward.wiring.telemetry.starting.importlib.import_module", missing)
    with pytest.raises(SettingsError) as refused:
        opens(f'{setting} = "http://127.0.0.1:1"')
    assert refused.value.next_step is not None and "lakeward[telemetry]" in refused.value.next_step
