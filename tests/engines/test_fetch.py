"""Which files of a model are downloaded before its engine starts, and who is to blame if that fails."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from huggingface_hub import errors
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import PlaceError, PolicyError
from pipeline.engines.hugging_face import fetch_model, needed_files

SMALL = ["config.json", "generation_config.json", "tokenizer.json", "merges.txt", "chat_template.jinja", "README.md"]
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        (SHARDS, SHARDS),
        ([*SHARDS, "pytorch_model.bin", "model.onnx", "tf_model.h5", "original/consolidated.00.pth"], SHARDS),
        ([*SHARDS, "consolidated.safetensors", "params.json"], [*SHARDS, "params.json"]),
        (["consolidated.safetensors", "params.json"], ["consolidated.safetensors", "params.json"]),
        (["pytorch_model.bin", "onnx/model.safetensors"], ["pytorch_model.bin"]),
        (["model-q4.gguf", "model-q8.gguf"], []),
    ],
)
def test_weights_are_downloaded_in_one_format(others: list[str], wanted: list[str]) -> None:
    assert sorted(needed_files([*SMALL, *others], weights=True)) == sorted([*SMALL, *wanted])


@given(st.lists(st.sampled_from([*SMALL, *SHARDS, "pytorch_model.bin", "a/b.json", "model.gguf"]), unique=True))
def test_without_weights_the_rest_stays_the_same(names: list[str]) -> None:
    assert set(needed_files(names, weights=False)) == {
        name for name in needed_files(names, weights=True) if name.endswith((".json", ".txt", ".jinja", ".md"))
    }


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception | None], list[dict[str, Any]]]:
    """Have the Hub list the files of a model, and a download fail with an error or be noted."""

    def prepare(error: Exception | None) -> list[dict[str, Any]]:
        noted: list[dict[str, Any]] = []

        def download(model: str, **wanted: Any) -> None:
            noted.append({"model": model, **wanted})
            if error is not None:
                raise error

        monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", lambda *_, **__: [*SMALL, *SHARDS])
        monkeypatch.setattr("huggingface_hub.snapshot_download", download)
        return noted

    return prepare


def test_a_name_is_downloaded_and_a_folder_is_there(
    fetching: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    noted = fetching(None)
    fetch_model("org/name", "main", weights=True)
    assert noted == [{"model": "org/name", "revision": "main", "allow_patterns": [*SMALL, SHARDS[2], *SHARDS[:2]]}]
    fetch_model(str(tmp_path), None, weights=True)
    assert len(noted) == 1


def test_a_refused_model_is_the_models_fault(fetching: Callable[..., Any]) -> None:
    response = httpx.Response(403, request=httpx.Request("GET", "https://huggingface.co/api/models/org/name"))
    fetching(errors.GatedRepoError("refused", response=response))
    with pytest.raises(PolicyError, match=r"its owner restricts access .* HF_TOKEN") as caught:
        fetch_model("org/name", None, weights=True)
    assert not isinstance(caught.value, PlaceError)


def test_a_full_disk_is_the_places_fault(fetching: Callable[..., Any]) -> None:
    fetching(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(PlaceError, match="No space left on device; free space in the cache of models or set HF_HOME"):
        fetch_model("org/name", None, weights=True)


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("no route"), errors.OfflineModeIsEnabled("offline"), OSError("reset")]
)
def test_without_the_hub_the_engine_looks_into_its_cache(fetching: Callable[..., list[Any]], error: Exception) -> None:
    noted = fetching(error)
    fetch_model("org/name", None, weights=True)
    assert len(noted) == 1


def test_a_folder_that_this_machine_lacks_is_the_machines_fault(tmp_path: Path) -> None:
    """Another node may have it: the run goes on there."""
    with pytest.raises(PlaceError, match="this folder does not exist on this machine; use one that all nodes see"):
        fetch_model(str(tmp_path / "none"), None, weights=True)
