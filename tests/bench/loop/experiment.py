"""Runs the arms of the loop's experiments: labels, trains, scores and chooses, in this process and through the functions of the
commands. What an arm came to with a seed is a line of `results.jsonl`, and is not run again.
"""

import json
import random
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, cast

from tests.bench.loop.arms import DRAWS, PROBLEMS, SEEDS, Arm, Row, Values, true_rows
from tests.bench.loop.candidates import Candidates, candidates_of
from tests.bench.loop.choice import by_scores, without_scores
from tests.bench.loop.plan import CANDIDATES, CHAINS_ALONE, SEED, SIZE
from tests.bench.loop.problems import exercises
from tests.bench.loop.students import Print, Students
from tests.bench.loop.tiny_runs import TinyRun, TinyRuns
from tests.checkout import ROOT
from tests.tiny.arithmetic import Exercise

POOL = ROOT / "runs" / "loop-experiment"
TEST_PROBLEMS = 400


class Part(NamedTuple):
    """Labels that a student learns from. `tokens` were generated for them."""

    rows: Sequence[Row]
    tokens: int


class Experiment:
    """`folder` keeps runs and results. `problems`: of a seed."""

    def __init__(self, folder: Path, show: Print, problems: int = PROBLEMS, test_problems: int = TEST_PROBLEMS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._show = show
        self._size = problems
        self._exercises = exercises(random.Random(SEED), SIZE, SEEDS * problems + test_problems)
        self._runs: dict[int, TinyRuns] = {}

    @property
    def problems(self) -> set[str]:
        """All that models learn from, or choose for."""
        return {exercise.problem for exercise in self._exercises}

    def exercises_of(self, seed: int) -> Sequence[Exercise]:
        return self._exercises[self._size * seed : self._size * (seed + 1)]

    def results(self) -> list[Row]:
        file = self.folder / "results.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def run(self, arm: Arm, seed: int) -> None:
        """Run an arm with a seed, unless its result is there."""
        key = {"arm": arm.name, "seed": seed}
        if any(key.items() <= row.items() for row in self.results()):
            return
        began = time.monotonic()
        self._show(f"{arm.name}, seed {seed}")
        labels = self.labels(arm, seed)
        found = self.students.trained(labels.rows, arm.settings, seed, self.folder / "model")
        result = {**key, "tokens": labels.tokens, **found, "seconds": round(time.monotonic() - began, 1)}
        with (self.folder / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")

    def write_model(self, arm: Arm, seed: int, out: Path) -> Row:
        """Train an arm on the chains of a seed into `out`, which `score` and `search` load. Returns what `Students` does: of a
        model that is there already, what it came to then."""
        figures = out / "figures.json"
        if not figures.exists():
            self._show(f"{arm.name}, seed {seed}: {out}")
            found = self.students.trained(self.labels(arm, seed).rows, arm.settings, seed, out, keep=True)
            figures.write_text(json.dumps(found), encoding="utf-8")
        return cast("Row", json.loads(figures.read_text(encoding="utf-8")))

    @cached_property
    def students(self) -> Students:
        return Students(self.candidates, self._show)

    @cached_property
    def candidates(self) -> Candidates:
        of = self._exercises[SEEDS * self._size :]
        run = self._of(SEEDS).labelled("candidates", of, *CHAINS_ALONE, solutions=CANDIDATES, rollouts=1)
        return candidates_of(run, {exercise.problem: exercise for exercise in of})

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

    def labels(self, arm: Arm, seed: int) -> Part:
        """Of the seed's own problems; if the arm wants more than these, also those of the next seeds."""
        left, runs = arm.problems, list[TinyRun]()
        while left > 0:
            runs.append(self.labelled(arm, (seed + len(runs)) % SEEDS, left))
            left -= PROBLEMS
        rows = [row for run in runs for row in run.rows]
        if arm.values is Values.truth:
            rows = true_rows(rows, {exercise.problem: exercise for exercise in self._exercises})
        return Part(rows, sum(run.tokens for run in runs))

    def labelled(self, arm: Arm, seed: int, problems: int = PROBLEMS) -> TinyRun:
        """The run of a seed's own problems. All estimators see the same rollouts of a prefix, as far as they ask for them."""
        of = self.exercises_of(seed)[:problems]
        name = f"{arm.estimator[0].partition('=')[2]}-{arm.rollouts}-{len(of)}"
        return self._of(seed).labelled(name, of, *arm.estimator, solutions=DRAWS, rollouts=arm.rollouts)

    def _of(self, seed: int) -> TinyRuns:
        if seed not in self._runs:
            # One at a time: the probabilities that an engine remembers take memory.
            self._runs = {seed: TinyRuns(self.folder / f"seed-{seed}", seed)}
        return self._runs[seed]
