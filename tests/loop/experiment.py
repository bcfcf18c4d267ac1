"""Runs the arms of the loop's experiment: labels, trains, scores and chooses, in this process and through the functions of the
commands. What an arm came to with a seed is a line of `results.jsonl`, and is not run again.
"""

import json
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from transformers import set_seed

from pipeline.graders.registry import checker_for
from pipeline.scorers.chain_scores import chain_scores
from pipeline.scorers.encoding import encode_chain, encoder, pad_id_of
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
from tests.loop.arms import DRAWS, PROBLEMS, SEEDS, Arm, Row, Values, true_rows
from tests.loop.candidates import Candidates, candidates_of
from tests.loop.choice import by_scores, without_scores
from tests.loop.plan import CANDIDATES, SEED, SIZE
from tests.loop.pool import pool_part
from tests.loop.problems import exercises
from tests.loop.replay import Graded, Labelled, label_settings, labelled
from tests.loop.sampler import Sampler
from tests.tiny.policy import ASSET

TEST_PROBLEMS = 400
ROLLOUTS = 4
"""Of every prefix, in the pool. What an estimator wants beyond is drawn when it asks."""
AGGREGATIONS = ("last", "min", "product", "mean")
LARGEST = 16
Print = Callable[[str], None]


class Experiment:
    """`folder` keeps the pool and the results."""

    def __init__(self, folder: Path, show: Print) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        silence_libraries()
        self._folder = folder
        self._show = show
        self._exercises = exercises(random.Random(SEED), SIZE, SEEDS * PROBLEMS + TEST_PROBLEMS)
        self._checker = checker_for(label_settings().grader)
        self._tokenizer = load_tokenizer(str(ASSET))
        self._max_length = context_of(load_config(str(ASSET)), self._tokenizer)
        self._parts: dict[int, Graded] = {}
        self._labelled: dict[tuple[object, ...], Labelled] = {}

    @property
    def problems(self) -> set[str]:
        """All that models learn from, or choose for."""
        return {exercise.problem for exercise in self._exercises}

    def close(self) -> None:
        self._checker.close()

    def results(self) -> list[Row]:
        """Everything that was run."""
        file = self._folder / "results.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def run(self, arm: Arm, seed: int, training_seed: int) -> None:
        """Run an arm on the chains of a seed, unless its result is there."""
        key = {"arm": arm.name, "seed": seed, "training_seed": training_seed}
        if any(key.items() <= result.items() for result in self.results()):
            return
        began = time.monotonic()
        self._show(f"{arm.name}, chains of seed {seed}, training seed {training_seed}")
        labels = self._labels(arm, seed)
        found = self._trained(arm, labels, training_seed)
        result = {**key, "rollouts": labels.rollouts, "tokens": labels.tokens, **found}
        result["seconds"] = round(time.monotonic() - began, 1)
        with (self._folder / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")

    def write_model(self, arm: Arm, seed: int, out: Path) -> Row:
        """Train an arm on the chains of a seed into `out`, which `score` and `search` load. Returns what `_chosen` returns: of
        a model that is there already, what it came to then."""
        figures = out / "figures.json"
        if not figures.exists():
            self._show(f"{arm.name}, chains of seed {seed}: {out}")
            shutil.rmtree(out, ignore_errors=True)
            found = self._trained(arm, self._labels(arm, seed), seed, out=out)
            figures.write_text(json.dumps(found), encoding="utf-8")
        return cast("Row", json.loads(figures.read_text(encoding="utf-8")))

    @cached_property
    def candidates(self) -> Candidates:
        """The candidates that every model chooses among."""
        graded = self._graded("test", self._exercises[SEEDS * PROBLEMS :], draws=CANDIDATES, rollouts=0, seed=SEEDS)
        return candidates_of(graded, CANDIDATES)

    @cached_property
    def votes(self) -> Mapping[str, Sequence[float]]:
        """What needs no scores: `majority 16` and so on, problem by problem."""
        return {name: chances.tolist() for name, chances in without_scores(self.candidates.contests, SEED).items()}

    @cached_property
    def by_arithmetic(self) -> dict[str, float]:
        """The accuracy of a perfect checker of steps: the score of a chain is the share of its steps that are right so far."""
        scores = [sum(chain.right_so_far) / len(chain.right_so_far) for chain in self.candidates.chains]
        chances = by_scores(self.candidates.contests, scores, "mean", SEED)
        return {name: float(of.mean()) for name, of in chances.items()}

    def _labels(self, arm: Arm, seed: int) -> Labelled:
        """Of the seed's own problems; if the arm wants more than these, also those of the next seeds."""
        left, found = arm.problems, list[Labelled]()
        while left > 0:
            found.append(self._labels_of_part(arm, (seed + len(found)) % SEEDS, min(left, PROBLEMS)))
            left -= PROBLEMS
        rows = [row for labels in found for row in labels.rows]
        if arm.values is Values.truth:
            rows = true_rows(rows, {exercise.problem: exercise for exercise in self._exercises})
        return Labelled(
            rows=tuple(rows),
            rollouts=sum(labels.rollouts for labels in found),
            tokens=sum(labels.tokens for labels in found),
        )

    def _labels_of_part(self, arm: Arm, seed: int, problems: int) -> Labelled:
        key = (arm.estimator, arm.rollouts, problems, seed)
        if key not in self._labelled:
            graded = self._part(seed)
            chosen = [exercise.problem for exercise in graded.part.exercises[:problems]]
            estimator = label_settings(*arm.estimator).estimator
            self._labelled[key] = labelled(graded, chosen, estimator, draws=DRAWS, rollouts=arm.rollouts)
        return self._labelled[key]

    def _part(self, seed: int) -> Graded:
        if seed not in self._parts:
            of = self._exercises[PROBLEMS * seed : PROBLEMS * (seed + 1)]
            self._parts[seed] = self._graded(f"train-{seed}", of, draws=DRAWS, rollouts=ROLLOUTS, seed=seed)
        return self._parts[seed]

    def _graded(self, name: str, of: Sequence[Any], *, draws: int, rollouts: int, seed: int) -> Graded:
        file = self._folder / f"{name}.parquet"
        part = pool_part(file, of, draws=draws, rollouts=rollouts, seed=seed, show=self._show)
        return Graded(part=part, checker=self._checker, sampler=Sampler(SEEDS + 1 + seed))

    def _trained(self, arm: Arm, labels: Labelled, training_seed: int, out: Path | None = None) -> Row:
        """`out`: where the model is kept; None: it is not."""
        folder = self._folder / "model" if out is None else out
        shutil.rmtree(folder, ignore_errors=True)
        config = TrainConfig(
            **{**arm.settings, "run_dir": "unused", "model": str(ASSET), "out": str(folder), "seed": training_seed}
        )
        training, held_out = (
            StepDataset.of_rows(labels.rows, config, self._tokenizer, max_length=self._max_length, held_out=held)
            for held in (False, True)
        )
        set_seed(training_seed)
        model = new_model(str(ASSET), None, separator=unescaped(config.separator), layers=None)
        began = time.process_time()
        lines: list[str] = []
        fitted = fit(config, model, self._tokenizer, training, held_out, lines.append)
        for line in lines:
            self._show(f"  {line}")
        if out is not None:
            model.save_pretrained(out)
            self._tokenizer.save_pretrained(out)
            shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
        return {
            "chains": len(training) + len(held_out),
            "held_out_loss": fitted.metrics.loss,
            "train_seconds": round(time.process_time() - began, 1),
            **self._chosen(model, config),
        }

    def _chosen(self, model: Any, config: TrainConfig) -> Row:
        """How the model ranks, and how often what it chooses is right. `by_problem`: with all candidates."""
        encode, candidates = encoder(self._tokenizer), self.candidates
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
            scores = [getattr(chain_scores(each), name) for each in steps]
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
