"""A folder with a model runs nothing of its own here: neither code beside the weights nor a pickle."""

import json
import pickle
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pipeline.__main__ import main
from pipeline.core.errors import PolicyError, UsageError
from pipeline.engines.hugging_face import load_tokenizer as load_policy_tokenizer
from pipeline.export.formats.tokens import load_encoder
from pipeline.scorers.heads import load_config, load_tokenizer, token_classes
from pipeline.scorers.settings import OwnConfig
from pipeline.train.model import new_model
from tests.library import Library
from tests.tiny.policy import ASSET

MODULE = """
from pathlib import Path
Path({marker!r}).touch()
from transformers import LlamaConfig, LlamaForTokenClassification, PreTrainedTokenizerFast
class OwnConfig(LlamaConfig): model_type = {kind!r}
class OwnModel(LlamaForTokenClassification): config_class = OwnConfig
class OwnTokenizer(PreTrainedTokenizerFast): pass
"""
CODE = {"AutoConfig": "own.OwnConfig", "AutoModelForTokenClassification": "own.OwnModel"}
TOKENIZER_CODE = {"AutoTokenizer": ["own.OwnTokenizer", "own.OwnTokenizer"]}
HEAD = {"architectures": ["LlamaForTokenClassification"], "num_labels": 2, "stepvalue_separator": "\n"}
LOADERS: dict[str, Callable[[str], Any]] = {
    "tokenizer of label": lambda model: load_policy_tokenizer(model, None),
    "tokenizer of export": load_encoder,
    "tokenizer of train": load_tokenizer,
    "settings of train": load_config,
    "model of train": lambda model: new_model(model, None, separator="\n", layers=None),
    "model of score": lambda model: token_classes(OwnConfig(model=model), "cpu"),
}
TOKENIZERS = [name for name in LOADERS if name.startswith("tokenizer")]


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that exists once something of a model has run."""
    return tmp_path / "it-ran"


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("learnable", tmp_path_factory.mktemp("small"))


def model_folder(folder: Path, **changes: object) -> Path:
    """The tiny model with a head for scores, which nobody has trained, and with changes of its config.json."""
    shutil.copytree(ASSET, folder)
    change(folder / "config.json", **{**HEAD, **changes})
    return folder


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("kind", ["llama", "own"], ids=["a known architecture", "an architecture of its own"])
@pytest.mark.parametrize("loader", LOADERS)
def test_code_of_a_model_is_not_run(loader: str, kind: str, marker: Path, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", model_type=kind, auto_map={**CODE, **TOKENIZER_CODE})
    change(folder / "tokenizer_config.json", tokenizer_class="OwnTokenizer", auto_map=TOKENIZER_CODE)
    (folder / "own.py").write_text(MODULE.format(marker=str(marker), kind=kind))
    native = kind == "llama" and loader not in TOKENIZERS
    with (
        nullcontext() if native else pytest.raises((PolicyError, UsageError), match=r"cannot be loaded: .*custom code")
    ):
        LOADERS[loader](str(folder))
    assert not marker.exists()


class Touches:
    """A pickle of this makes the file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self._path,)


@pytest.mark.parametrize("command", ["train", "score"])
@pytest.mark.parametrize("what", ["tensors alone", "code alone", "code in a file of torch"])
def test_pickled_weights_are_refused(
    command: str, what: str, marker: Path, run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model_folder(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    content = weights if what == "tensors alone" else {**weights, "more": Touches(marker)}
    write = torch.save if what == "code in a file of torch" else lambda held, path: path.write_bytes(pickle.dumps(held))
    write(content, folder / "pytorch_model.bin")
    separator = {"train": "separator", "score": "scorer.separator"}[command]
    out = tmp_path / "out.parquet"
    words = [command, f"run_dir={run_dir}", f"model={folder}", f"out={out}", rf"{separator}='\n'"]
    assert main(words) == UsageError.exit_code
    said = capsys.readouterr().err
    assert f"the model {folder} cannot be loaded: " in said
    assert "with weights in safetensors" in said
    assert not marker.exists()
