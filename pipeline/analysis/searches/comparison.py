"""Compares runs of `search` on the problems that all of them have. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.searches.coverage import Coverage, coverage
from pipeline.analysis.searches.curves import CurvePoint, best_chances, curve, doublings, vote_chances
from pipeline.analysis.searches.equal_tokens import EqualTokens, at_equal_tokens, rights
from pipeline.analysis.searches.estimates import problem_means
from pipeline.analysis.searches.hacking import Hacking, ScoreAgainstOutcome, hacking, score_against_outcome
from pipeline.analysis.searches.records import SearchRun
from pipeline.analysis.searches.summary import RunSummary, summary
from pipeline.core.statistics import Floats

_OWN = ("search.", "staged_input")
"""Settings in which runs that are compared differ as a matter of course."""
_N = ("search.n", "staged_input")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What is said of one run. `curve`: of a run of independent chains, empty for another. `equal_tokens`: None for the run
    that the others are compared with, where there is none, and for a run that begins with chains of the input."""

    summary: RunSummary
    accept: float | None
    calibrated: bool
    coverage: Coverage
    curve: tuple[CurvePoint, ...]
    hacking: Hacking
    equal_tokens: EqualTokens | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SameMethod:
    """Runs that differ in n alone, by rising n: their names, and the scores and accuracy of their choices."""

    names: tuple[str, ...]
    by_n: ScoreAgainstOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchComparison:
    """`problems`: those that all runs have; `left_out`: those that only some have. `differing`: settings besides those of the
    method in which the runs differ. `against`: the run whose chains best-of-k is made of, None without one."""

    problems: int
    left_out: int
    differing: tuple[str, ...]
    against: str | None
    runs: tuple[RunFigures, ...]
    same_method: tuple[SameMethod, ...]


def on_common_problems(runs: Sequence[SearchRun]) -> tuple[list[SearchRun], int]:
    """The runs with the searches of those problems that all of them have, and how many problems are left out."""
    sets = [set(run.problem_ids) for run in runs]
    common = set.intersection(*sets)
    kept = [replace(run, searches=tuple(each for each in run.searches if each.problem_id in common)) for run in runs]
    return kept, len(set.union(*sets) - common)


def best_of_k_from(runs: Sequence[SearchRun]) -> SearchRun | None:
    """The first run that best-of-k can be made of: with independent, scored chains."""
    return next((run for run in runs if run.independent and run.scored), None)


def run_figures(run: SearchRun, sizes: Sequence[int] | None, seed: int) -> RunFigures:
    """What is said of a run with at least one search. `sizes`: of the curve; None: 1, 2, 4 and so on, and all candidates."""
    most = max(len(each.candidates.answers) for each in run.searches)
    used = sorted({n for n in sizes if n <= most}) if sizes is not None else doublings(most) if most else []
    shown = run.independent and bool(used)
    return RunFigures(
        summary=summary(run, seed),
        accept=run.accept,
        calibrated=run.calibrated,
        coverage=coverage(run.searches, seed),
        curve=tuple(curve(run, best_chances(run, used), vote_chances(run, used, seed), used, seed)) if shown else (),
        hacking=hacking(run, seed),
    )


def compare_searches(
    runs: Sequence[SearchRun], against: SearchRun | None, sizes: Sequence[int] | None, seed: int
) -> SearchComparison:
    """Compare runs. `against`: the run of independent, scored chains that best-of-k is made of; it need not be among `runs`.

    Raises ValueError if the runs have no problem in common.
    """
    every = [*runs, *([] if against is None or against in runs else [against])]
    kept, left_out = on_common_problems(every)
    if not kept[0].searches:
        raise ValueError("the runs have no problem in common")
    chains = None if against is None else kept[every.index(against)]
    figures = []
    for run in kept[: len(runs)]:
        # Nothing says what chains of the input cost.
        apart = chains is None or run is chains or run.given
        equal = None if apart or chains is None else at_equal_tokens(run, chains, seed)
        figures.append(replace(run_figures(run, sizes, seed), equal_tokens=equal))
    return SearchComparison(
        problems=len(set(kept[0].problem_ids)),
        left_out=left_out,
        differing=_differing([run.settings for run in kept], _OWN),
        against=None if against is None else against.name,
        runs=tuple(figures),
        same_method=tuple(_same_method(kept[: len(runs)], seed)),
    )


def _same_method(runs: Sequence[SearchRun], seed: int) -> list[SameMethod]:
    groups: defaultdict[str, list[SearchRun]] = defaultdict(list)
    for run in runs:
        alike = {key: value for key, value in run.settings.items() if key not in _N}
        groups[repr(sorted(alike.items()))].append(run)
    found = []
    for group in groups.values():
        ordered = sorted(group, key=lambda run: run.n)
        sizes = [run.n for run in ordered]
        if len(set(sizes)) < len(sizes) or len(sizes) == 1 or not all(run.scored for run in ordered):
            continue
        scores, right = (
            np.hstack([problem_means(run.problem_ids, of(run)) for run in ordered]) for of in (_scores, _rights)
        )
        names = tuple(run.name for run in ordered)
        found.append(SameMethod(names=names, by_n=score_against_outcome(sizes, scores, right, seed)))
    return found


def _scores(run: SearchRun) -> Floats:
    return np.array([[np.nan if each.score is None else each.score] for each in run.searches])


def _rights(run: SearchRun) -> Floats:
    return rights(run)[:, None]


def _differing(settings: Sequence[Mapping[str, object]], own: tuple[str, ...]) -> tuple[str, ...]:
    """The settings that all runs have, and not alike. A run that needs no scorer has no settings of one."""
    keys = sorted(key for key in set.intersection(*(set(each) for each in settings)) if not key.startswith(own))
    return tuple(key for key in keys if len({repr(each[key]) for each in settings}) > 1)
