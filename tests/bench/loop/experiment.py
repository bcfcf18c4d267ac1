"""Runs the arms of the loop's experiment: labels, trains, scores and chooses, in this process and through the functions of the
commands. What an arm came to with a seed is a line of `results.jsonl`, and is not run again.
"""

import json
import random
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

from pipeline.graders.registry import checker_for
from tests.bench.loop.arms import DRAWS, PROBLEMS, SEEDS, Arm, Row, Values, true_rows
from tests.bench.loop.candidates import Candidates, candidates_of
from tests.bench.loop.choice import by_scores, without_scores
from tests.bench.loop.plan import CANDIDATES, SEED, SIZE
from tests.bench.loop.pool import pool_part
from tests.bench.loop.problems import exercises
from tests.bench.loop.replay import Graded, Labelled, label_settings, labelled
from tests.bench.loop.results import Results
from tests.bench.loop.sampler import Sampler
from tests.bench.loop.students import Print, Students
from tests.checkout import ROOT
from tests.tiny.arithmetic import Exercise

POOL = ROOT / "runs" / "loop-experiment"
TEST_PROBLEMS = 400
ROLLOUTS = 4
"""Of every prefix, in the pool. What an estimator wants beyond is drawn when it asks."""


class Experiment:
    """`folder` keeps the pool and the results."""

    def __init__(self, folder: Path, show: Print) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._results = Results(folder / "results.jsonl")
        self._show = show
        self._exercises = exercises(random.Random(SEED), SIZE, SEEDS * PROBLEMS + TEST_PROBLEMS)
        self._checker = checker_for(label_settings().grader)
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
        return self._results.rows()

    def exercises_of(self, seed: int) -> Sequence[Exercise]:
        """The seed's own problems to learn from."""
        return self._exercises[PROBLEMS * seed : PROBLEMS * (seed + 1)]

    def run(self, arm: Arm, seed: int) -> None:
        """Run an arm on the chains of a seed, unless its result is there."""
        key = {"arm": arm.name, "seed": seed}
        if self._results.has(key):
            return
        began = time.monotonic()
        self._show(f"{arm.name}, seed {seed}")
        labels = self._labels(arm, seed)
        found = self.students.trained(labels.rows, arm.settings, seed, self._folder / "model")
        result = {**key, "rollouts": labels.rollouts, "tokens": labels.tokens, **found}
        result["seconds"] = round(time.monotonic() - began, 1)
        self._results.add(result)

    def write_model(self, arm: Arm, seed: int, out: Path) -> Row:
        """Train an arm on the chains of a seed into `out`, which `score` and `search` load. Returns what `Students` does: of a
        model that is there already, what it came to then."""
        figures = out / "figures.json"
        if not figures.exists():
            self._show(f"{arm.name}, chains of seed {seed}: {out}")
            found = self.students.trained(self._labels(arm, seed).rows, arm.settings, seed, out, keep=True)
            figures.write_text(json.dumps(found), encoding="utf-8")
        return cast("Row", json.loads(figures.read_text(encoding="utf-8")))

    @cached_property
    def students(self) -> Students:
        return Students(self.candidates, self._show)

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
            self._parts[seed] = self._graded(
                f"train-{seed}", self.exercises_of(seed), draws=DRAWS, rollouts=ROLLOUTS, seed=seed
            )
        return self._parts[seed]

    def _graded(self, name: str, of: Sequence[Exercise], *, draws: int, rollouts: int, seed: int) -> Graded:
        file = self._folder / f"{name}.parquet"
        part = pool_part(file, of, draws=draws, rollouts=rollouts, seed=seed, show=self._show)
        return Graded(part=part, checker=self._checker, sampler=Sampler(SEEDS + 1 + seed))
