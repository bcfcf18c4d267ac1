"""Trains PRMs on rows of `labels`, in this process and through the functions of `train`, and lets them choose candidates."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from transformers import set_seed

from pipeline.data.prompts import encoder
from pipeline.scorers.chain_scores import chain_scores
from pipeline.scorers.encoding import encode_chain, pad_id_of
from pipeline.scorers.heads import (
    classes_of,
    context_of,
    good_probabilities,
    load_config,
    load_tokenizer,
    read_logits,
    silence_libraries,
)
from pipeline.scorers.settings import unescaped
from pipeline.train.data import StepDataset
from pipeline.train.model import new_model
from pipeline.train.result import CHECKPOINTS, auc
from pipeline.train.settings import TrainConfig, TrainTarget
from pipeline.train.trainer import fit
from tests.bench.loop.candidates import Candidates
from tests.bench.loop.choice import by_scores
from tests.bench.loop.plan import SEED
from tests.tiny.policy import ASSET

AGGREGATIONS = ("last", "min", "product", "mean")
LARGEST = 16
Print = Callable[[str], None]
Row = dict[str, Any]


class Students:
    """All start from the policy's own weights, and choose among the same candidates."""

    def __init__(self, candidates: Candidates, show: Print) -> None:
        silence_libraries()
        self._candidates = candidates
        self._show = show
        self._tokenizer = load_tokenizer(str(ASSET))
        self._max_length = context_of(load_config(str(ASSET)), self._tokenizer)

    def trained(
        self, rows: Sequence[Row], settings: Mapping[str, Any], seed: int, folder: Path, *, keep: bool = False
    ) -> Row:
        """Train a student on these rows with these settings of `train`. `folder`: where it works. `keep`: whether the model
        stays there."""
        shutil.rmtree(folder, ignore_errors=True)
        config = TrainConfig(**{**settings, "run_dir": "unused", "model": str(ASSET), "out": str(folder), "seed": seed})
        training, held_out = (
            StepDataset.of_rows(rows, config, self._tokenizer, max_length=self._max_length, held_out=held)
            for held in (False, True)
        )
        set_seed(seed)
        model = new_model(str(ASSET), None, separator=unescaped(config.separator), layers=None)
        began = time.process_time()
        lines: list[str] = []
        fitted = fit(config, model, self._tokenizer, training, held_out, lines.append)
        for line in lines:
            self._show(f"  {line}")
        if keep:
            model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)
            shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
        return {
            "chains": len(training) + len(held_out),
            "held_out_loss": fitted.metrics.loss,
            "train_seconds": round(time.process_time() - began, 1),
            **self._chosen(model, config),
        }

    def _chosen(self, model: Any, config: TrainConfig) -> Row:
        """How the model ranks, and how often what it chooses is right. `by_problem`: with all candidates."""
        encode, candidates = encoder(self._tokenizer), self._candidates
        encoded = [
            encode_chain(
                encode,
                chain.problem,
                chain.steps,
                separator=unescaped(config.separator),
                bos=self._tokenizer.bos_token_id,
                max_length=self._max_length,
            )
            for chain in candidates.chains
        ]
        logits = read_logits(classes_of(model), encoded, batch_tokens=8192, pad_id=pad_id_of(self._tokenizer))
        steps = [good_probabilities(each) for each in logits]
        chances: dict[str, Any] = {}
        for name in AGGREGATIONS if config.target is TrainTarget.step else AGGREGATIONS[:1]:
            scores = [chain_scores(each)[f"score_{name}"] for each in steps]
            chances |= by_scores(candidates.contests, scores, name, SEED)
        flat = [score for each in steps for score in each]
        return {
            "means": {name: float(of.mean()) for name, of in chances.items()},
            "by_problem": {
                name: np.round(of, 4).tolist() for name, of in chances.items() if name.endswith(f" {LARGEST}")
            },
            "step_auc": auc(flat, [int(right) for chain in candidates.chains for right in chain.right_so_far]),
            "last_auc": auc([each[-1] for each in steps], [int(chain.is_right) for chain in candidates.chains]),
        }
