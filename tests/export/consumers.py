"""The readers of released trainers, out of single files of theirs: the trainers themselves need GPUs and much else.

A package's own `__init__` is not run. What a file takes from its package comes from the package's own files; only axolotl's
`IGNORE_INDEX` and `DictDefault` are put in place, for their files need packages that are not here. A trainer that is not
installed skips the test.
"""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TRL = "1.13.0"
OPENRLHF = "0.9.5"
AXOLOTL = "0.19.0"


def trl_prm_trainer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`PRMTrainer` of TRL."""
    _folder("trl", TRL)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    return importlib.import_module("trl.experimental.prm.prm_trainer").PRMTrainer


def openrlhf_dataset() -> Any:
    """`ProcessRewardDataset` of OpenRLHF."""
    with _without_init("openrlhf", OPENRLHF, ("openrlhf", "openrlhf.datasets", "openrlhf.utils")):
        return importlib.import_module("openrlhf.datasets.process_reward_dataset").ProcessRewardDataset


def openrlhf_loss() -> Any:
    """`PRMLoss` of OpenRLHF."""
    with _without_init("openrlhf", OPENRLHF, ("openrlhf", "openrlhf.models")):
        return importlib.import_module("openrlhf.models.loss").PRMLoss


def axolotl_strategy() -> Any:
    """`StepwiseSupervisedPromptTokenizingStrategy` of axolotl."""
    names: dict[str, dict[str, object]] = {
        "axolotl.prompt_tokenizers": {"IGNORE_INDEX": -100},
        "axolotl.utils.dict": {"DictDefault": dict},
    }
    with _without_init("axolotl", AXOLOTL, ("axolotl", "axolotl.prompt_strategies", "axolotl.utils"), names):
        module = importlib.import_module("axolotl.prompt_strategies.stepwise_supervised")
        return module.StepwiseSupervisedPromptTokenizingStrategy


def axolotl_config() -> Any:
    """`AxolotlInputConfig`, with which axolotl reads its configuration."""
    with _without_init("axolotl", AXOLOTL, ("axolotl",)):
        return importlib.import_module("axolotl.utils.schemas.config").AxolotlInputConfig


def _folder(package: str, version: str) -> Path:
    try:
        found = distribution(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} {version} is not installed: make setup")
    assert found.version == version, f"{package} {found.version} is installed, and these tests are about {version}"
    return Path(str(found.locate_file(package)))


@contextmanager
def _without_init(
    package: str, version: str, bare: tuple[str, ...], names: Mapping[str, Mapping[str, object]] | None = None
) -> Iterator[None]:
    """In the block, the packages `bare` have their files but run no `__init__`, and modules contain the given `names`."""
    folder = _folder(package, version)
    before = dict(sys.modules)
    for name in bare:
        module = ModuleType(name)
        module.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
    for name, values in (names or {}).items():
        module = ModuleType(name)
        vars(module).update(values)
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            if name in before:
                sys.modules[name] = before[name]
            else:
                del sys.modules[name]
