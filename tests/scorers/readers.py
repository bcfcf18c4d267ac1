"""Random tiny models of each kind that both engines read, and chains for them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.scorers.local import LocalEngine
from pipeline.scorers.model import ModelScorer
from pipeline.scorers.registry import SCORERS
from pipeline.scorers.settings import (
    FoverConfig,
    MathShepherdConfig,
    ModelEngine,
    ModelScorerConfig,
    OwnConfig,
    QwenConfig,
    RlhflowConfig,
)
from pipeline.train.model import new_model
from tests.scorers.loaded import chain
from tests.scorers.published import llama_prm, mistral_prm, qwen_prm
from tests.tiny.policy import ASSET

SEPARATOR = "\n"
LONGEST = 640
"""Tokens of a chain of the published layouts: not all that their models take."""


def own_prm(folder: Path) -> Path:
    """The tiny policy's trunk under a random head whose scores differ, as `train` writes it."""
    torch.manual_seed(0)
    model = new_model(str(ASSET), None, separator=SEPARATOR, layers=None)
    with torch.no_grad():
        model.score.weight.normal_(0, model.score.in_features**-0.5)
        model.score.bias.normal_(0, 0.5)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(ASSET).save_pretrained(folder)
    return folder


MODELS: dict[str, tuple[Callable[[Path], Path], type[ModelScorerConfig]]] = {
    "own": (own_prm, OwnConfig),
    "qwen": (qwen_prm, QwenConfig),
    "math_shepherd": (mistral_prm, MathShepherdConfig),
    "rlhflow": (llama_prm, RlhflowConfig),
    "fover": (llama_prm, FoverConfig),
}
ALONE = Surroundings(cpus=1)
CAUSAL = ("math_shepherd", "rlhflow", "fover")
"""Read as the log-probabilities of two next tokens."""


def made(kind: str, folder: Path, **settings: Any) -> ModelScorer:
    """The scorer of a new model."""
    make, config = MODELS[kind]
    limit = {} if kind == "own" else {"max_length": LONGEST}
    chosen = config(model=str(make(folder)), dtype="float32", **{"max_num_seqs": 32, **limit, **settings})
    scorer: Any = SCORERS.create(kind, chosen)
    assert isinstance(scorer, ModelScorer)
    return scorer


def engine_by(
    engine: ModelEngine, scorer: ModelScorer, around: Surroundings = ALONE, *, newest_only: bool = False
) -> LocalEngine:
    """A new engine of a scorer, which vLLM or transformers computes."""
    chosen = type(scorer)(replace(scorer.settings, engine=engine))
    return LocalEngine(chosen, around, newest_only=newest_only)


def chains(count: int, *, steps: int = 5) -> list[ChainText]:
    """Chains of different lengths about different problems, of characters that the tiny policy knows."""
    return [
        chain(
            number,
            f"{number}+{number * 3}*2-{number % 7}",
            *[f"{number * step}+{step}={number * step + step}" for step in range(1, steps + 1 - number % 3)],
        )
        for number in range(count)
    ]
