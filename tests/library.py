"""A library of finished runs: each is made once per test session, by the process that first asks for it, and lent as a copy.

Nothing is kept from session to session: a run of yesterday's code would hide a fault of today's.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.audit.runs import edited, labelled
from tests.consensus_labels import consensus_run
from tests.export.known_runs import known_run, ungraded_run
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process
from tests.searches import runs as searches
from tests.train.runs import learnable_run

SMALL = ("sampling.rollouts=6", "run.unit_problems=2", "run.units_in_flight=1")


def _label(folder: Path, problems: int, chains: int, *overrides: str) -> None:
    label_in_process(settings(folder, sums(problems, chains), *overrides))


def _small(name: str) -> Callable[[Path], None]:
    return lambda folder: _label(folder, 4, 2, f"estimator={name}", *SMALL)


def _search(*overrides: str, known: bool = True) -> Callable[[Path], object]:
    rows = searches.sums(12, known=known)
    return lambda folder: searches.search_in(folder, rows, "search.n=4", "run.unit_problems=5", *overrides)


RUNS: Mapping[str, Callable[[Path], object]] = {
    # Rows of every kind, three rollouts of each prefix, two units, an engine that died once.
    "mixed": lambda folder: labelled(folder, "plan.gpu_hour_price=2"),
    # The same, extended, regraded and relabelled.
    "edited": edited,
    # Four problems with two chains each, in two units, one after the other: the second can begin with what the first taught.
    **{name: _small(name) for name in ("fixed", "first_success", "bisect", "pooled")},
    # 30 problems with four chains each, which differ from the second step on, in units of ten problems.
    "many": lambda folder: _label(folder, 30, 4, "estimator=fixed", "run.unit_problems=10"),
    # Known values, of which half are against the outcome of their chain; a grader that was always late.
    "known": known_run,
    "ungraded": ungraded_run,
    # Values that a small model can learn.
    "learnable": partial(learnable_run, problems=12),
    # Labels of which two witnesses say something; the second with probabilities.
    "consensus": consensus_run,
    "consensus-soft": partial(consensus_run, soft=True),
    # Searches of twelve problems.
    "best_of_n": _search("search=best_of_n"),
    "beam": _search("search=beam", "search.accept=0.6"),
    "majority": _search("search=majority"),
    "unknown": _search("search=best_of_n", known=False),
}


@dataclass(frozen=True, slots=True)
class Library:
    """The runs of a session. `folder` is shared by its processes."""

    folder: Path

    @classmethod
    def of(cls, folders: pytest.TempPathFactory) -> "Library":
        """The folders of pytest-xdist's processes lie beside each other, in one of the run."""
        base = folders.getbasetemp()
        return cls((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "library")

    def copy(self, name: str, folder: Path) -> Path:
        """The directory of a run, `run` in this folder, beside the rows that it was made from. A test may change and damage it:
        it holds no links, because tests write into files, and small files are copied as fast as they are linked."""
        shutil.copytree(self._made(name), folder, dirs_exist_ok=True)
        return folder / "run"

    def _made(self, name: str) -> Path:
        made, done = self.folder / name, self.folder / f"{name}.done"
        self.folder.mkdir(exist_ok=True)
        with open(self.folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(made, ignore_errors=True)
                made.mkdir()
                RUNS[name](made)
                done.touch()
        return made
