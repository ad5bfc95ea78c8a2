"""A file is what its content is; none is unpickled, imported or run to find out, nor afterwards (S04)."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
import zlib
from pathlib import Path
from random import Random

import numpy as np
import pytest
from onnx import TensorProto, helper

import lakeward
from lakeward.errors import ModelRefused, StorageError
from lakeward.pipelines.models.content import what_is
from lakeward.pipelines.models.formats.onnx import Onnx
from lakeward.pipelines.models.model_format import Declared
from support.onnx_models import linear, model_of


class Hostile:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def hostile_files(marker: Path) -> dict[str, bytes]:
    """Return files whose load would make the marker, by names that lie."""
    bomb = Hostile(marker)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/version", "3")
        archive.writestr("archive/data.pkl", pickle.dumps(bomb))
    array = io.BytesIO()
    np.save(array, np.array([bomb], dtype=object), allow_pickle=True)
    arrays = io.BytesIO()
    np.savez(arrays, np.array([bomb], dtype=object))
    return {
        **{f"protocol{number}.onnx": pickle.dumps(bomb, number) for number in range(6)},
        "model.pkl": pickle.dumps(bomb),
        "model.joblib": pickle.dumps(bomb),
        "packed.joblib": zlib.compress(pickle.dumps(bomb)),
        "model.skops": packed.getvalue(),
        "model.json": pickle.dumps(bomb),
        "torch.onnx": packed.getvalue(),
        "array.onnx": array.getvalue(),
        "arrays.onnx": arrays.getvalue(),
        "tag.onnx": f"!!python/object/apply:os.system ['touch {marker}']".encode(),
        "code.onnx": f"import os; os.system('touch {marker}')".encode(),
    }


SAYS = {
    "packed.joblib": "zlib data, in which joblib keeps pickles",
    "model.skops": "a zip archive with 'archive/data.pkl' in it, which is a pickle",
    "torch.onnx": "a zip archive with 'archive/data.pkl' in it, which is a pickle",
    "array.onnx": "a NumPy array of Python objects, which is a pickle",
    "arrays.onnx": "a zip archive with 'arr_0.npy' in it, which is a pickle",
    "tag.onnx": "YAML with tags that make Python objects",
    "code.onnx": "text",
}


def test_s04_what_a_file_is_is_told_from_its_content_and_nothing_of_it_runs(
    workspace: lakeward.Workspace, tmp_path: Path, root: Path
) -> None:
    marker = tmp_path / "pwned"
    for name, content in hostile_files(marker).items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelRefused) as raised:
            workspace.add_model(tmp_path / name, "m", project=root)
        assert SAYS.get(name, "a pickle, which can run any program") in raised.value.message, name
        assert raised.value.safe == "it was not loaded, and no model was added"
    assert not marker.exists()
    assert workspace.models() == []
    # The control: that is what loading one would have done.
    pickle.loads(pickle.dumps(Hostile(marker)))
    assert marker.exists()


@pytest.mark.parametrize("name", ["model.onnx", "model.pkl", "model", "model.json"])
def test_s04_a_model_is_taken_under_any_name(workspace: lakeward.Workspace, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(linear([1.0, 2.0]))
    added = workspace.add_model(tmp_path / name, "m", ["a", "b"])
    assert (added.version.format, added.version.reference) == ("onnx", "m@1")


def test_s04_a_function_is_not_run_when_it_is_added(workspace: lakeward.Workspace, tmp_path: Path, root: Path) -> None:
    marker = tmp_path / "pwned"
    (root / "models" / "m.py").write_text(f"import os\nos.system('touch {marker}')\ndef f(batch):\n    return []\n")
    assert workspace.add_model("m:f", "m", ["a:long"], ["y:long"], root).new
    assert not marker.exists()


@pytest.mark.parametrize("what", ["..m:f", "os:system", "json:loads"])
def test_s04_a_function_comes_from_the_projects_folder_only(
    workspace: lakeward.Workspace, root: Path, what: str
) -> None:
    with pytest.raises(lakeward.errors.LakewardError, match="can't be read"):
        workspace.add_model(what, "m", ["a:long"], ["y:long"], root)


def test_s04_a_link_out_of_the_folder_is_refused(workspace: lakeward.Workspace, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("def f(batch):\n    return []\n")
    (root / "models" / "m.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(ModelRefused, match="is a link out of"):
        workspace.add_model("m:f", "m", ["a:long"], ["y:long"], root)


def test_a_file_that_is_not_the_one_that_was_added_is_not_loaded(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(linear([1.0]))
    version = workspace.add_model(tmp_path / "m.onnx", "m").version
    other = linear([2.0])
    with workspace.database.driver() as connection:
        connection.execute("UPDATE lakeward.model_files SET content = %s", (other,))
        connection.commit()
    with pytest.raises(StorageError) as raised:
        workspace.pipelines.models.load(version, 1)
    assert "the file of model m@1 has the hash" in raised.value.message
    with workspace.database.driver() as connection:
        connection.execute("ALTER TABLE lakeward.models DROP CONSTRAINT models_sha256_fkey")
        connection.execute("DELETE FROM lakeward.model_files")
        connection.commit()
    with pytest.raises(StorageError, match="is not in the workspace"):
        workspace.pipelines.models.load(version, 1)


def test_a_graph_that_reads_another_file_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"\0" * 4)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=str(secret))
    with pytest.raises(ModelRefused, match="the tensor 'w' is kept in another file"):
        Onnx().describe(adding(tensor), Declared())


def test_a_graph_that_gives_something_else_every_time_is_refused() -> None:
    graph = helper.make_graph(
        [helper.make_node("RandomNormalLike", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    with pytest.raises(ModelRefused, match="RandomNormalLike gives something else every time"):
        Onnx().describe(model_of(graph), Declared())


def test_a_graph_with_operators_that_nobody_has_is_refused() -> None:
    graph = helper.make_graph(
        [helper.make_node("Evil", ["x"], ["y"], domain="some.where")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    with pytest.raises(ModelRefused, match="ONNX Runtime refuses the model"):
        Onnx().describe(model_of(graph), Declared())


def adding(tensor: TensorProto) -> bytes:
    """Return a graph that adds a tensor to its input."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [tensor],
    )
    return model_of(graph)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (json.dumps({"a": [1]}).encode(), "JSON"),
        (b"{broken", "text"),
        (b"plain words", "text"),
        (b"\x1f\x8b\x08\x00", "gzip data, in which joblib keeps pickles"),
        (b"\x00\xff" * 40, "of no format that is known here"),
        (b"PAR1....", "a Parquet file"),
    ],
)
def test_other_files_are_called_what_they_are(content: bytes, what: str) -> None:
    assert not Onnx().recognises(content)
    assert what_is(content) == what


def test_broken_bytes_anywhere_are_refused_or_make_another_model(capfd: pytest.CaptureFixture[str]) -> None:
    whole, random = linear([1.0, 2.0]), Random(7)
    outcomes = dict.fromkeys(("no model", "refused", "a model"), 0)
    for _ in range(800):
        broken = bytearray(whole)
        for _ in range(random.randint(1, 3)):
            broken[random.randrange(len(broken))] = random.randrange(256)
        try:
            known = Onnx().recognises(bytes(broken))
            if known:
                Onnx().describe(bytes(broken), Declared(features={"a": None, "b": None}))
            outcomes["a model" if known else "no model"] += 1
        except ModelRefused:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 0, outcomes
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("cut", [1, 7, 20])
def test_a_file_that_is_cut_off_is_no_model(cut: int) -> None:
    whole = linear([1.0, 2.0])
    for end in range(1, len(whole), cut):
        content = whole[:end]
        if Onnx().recognises(content):
            with pytest.raises(ModelRefused):
                Onnx().describe(content, Declared(features={"a": None, "b": None}))
