"""What the second lap came to: labels with and without the witness, and what PRMs that learned from them choose."""

import json
from collections.abc import Mapping

import numpy as np
import polars as pl

from pipeline.analysis.select.methods import CandidateSet, best_of
from pipeline.analysis.select.read import match_answers, read_scores
from pipeline.analysis.settings import SelectConfig
from pipeline.core.statistics import Floats, Interval, bootstrap
from tests.loop.judgement import LabelsCount, Ranking, counted, ranking
from tests.loop.plan import CANDIDATES, SEED, STEP, Files
from tests.loop.transfer import CONSENSUS, MC
from tests.loop.truth import error_free
from tests.tiny.arithmetic import Exercise

Exercises = Mapping[str, Exercise]
_MODELS = {MC: "Monte Carlo alone", CONSENSUS: "consensus", STEP: "the first lap"}


def transfer(files: Files, others: Exercises, test: Exercises) -> list[str]:
    """Lines with all figures."""
    labels = pl.read_parquet(files.other_run / "labels" / "*.parquet")
    exact, scores = (pl.read_parquet(file) for file in (files.exact_labels, files.other_scores))
    figures = {
        "value by Monte Carlo alone": _ranking(labels, "value", others),
        "score of the first lap's PRM": _ranking(scores, "step_scores", others),
        "p_error_free of both": _ranking(labels, "p_error_free", others),
    }
    hard = {
        "Monte Carlo alone": _counted(labels, "mc_label", others),
        "exact": _counted(exact, "label", others),
        "posterior": _counted(labels, "label", others),
    }
    return [
        f"labels of {labels.height:,} chains of {labels['problem_id'].n_unique():,} problems of the second lap",
        *(f"  {name:<29} {found.shown()}" for name, found in figures.items()),
        *(f"  {name:<29} {found.shown()}" for name, found in hard.items()),
        "",
        *_choices(files, test),
    ]


def _choices(files: Files, test: Exercises) -> list[str]:
    """How the PRMs rank steps of the candidates, and what they choose among all candidates of a problem."""
    chances = {labels: best_chances(files, labels) for labels in _MODELS}
    lines = []
    for labels, name in _MODELS.items():
        steps = _ranking(pl.read_parquet(files.scores(labels)), "step_scores", test)
        methods = _accuracies(files, labels)
        lines.append(
            f"PRM of {name:<18} {steps.shown()}; best of {CANDIDATES} {methods['prm']}, weighted vote {methods['weighted']}, "
            f"majority vote {methods['majority']}"
        )
    (gain,) = bootstrap((chances[CONSENSUS] - chances[MC])[:, np.newaxis], SEED)
    return [
        *lines,
        f"best of {CANDIDATES}, consensus minus Monte Carlo alone, on the same candidates: {_shown(gain, '+')}",
    ]


def best_chances(files: Files, labels: str) -> Floats:
    """P(the best-scored candidate is right) of each problem, in the order of their ids. Shape (problems,)."""
    config = SelectConfig(scores=str(files.scores(labels)), run_dir=str(files.test_run))
    contests = match_answers(read_scores(config), config).contests
    return np.array([_best(contest) for contest in sorted(contests, key=lambda contest: contest.problem_id)])


def _best(contest: CandidateSet) -> float:
    scores = [candidate.score for candidate in contest.candidates]
    return best_of(scores, [candidate.right for candidate in contest.candidates], len(scores))


def _accuracies(files: Files, labels: str) -> dict[str, str]:
    """Method -> accuracy among all candidates, with its interval, as `select` wrote it."""
    found = json.loads(files.selected(labels).read_text(encoding="utf-8"))["selections"][-1]["accuracy"]
    return {
        method: _shown(Interval(value=each["mean"], low=each["low"], high=each["high"]))
        for method, each in found.items()
    }


def _ranking(chains: pl.DataFrame, column: str, exercises: Exercises) -> Ranking:
    rows = chains.select("problem", "steps", column).iter_rows()
    return ranking((figures, error_free(steps, exercises[problem])) for problem, steps, figures in rows)


def _counted(chains: pl.DataFrame, column: str, exercises: Exercises) -> LabelsCount:
    rows = chains.select("problem", "steps", column).iter_rows()
    return counted((labels, error_free(steps, exercises[problem])) for problem, steps, labels in rows)


def _shown(found: Interval, sign: str = "") -> str:
    mean = f"{found.value:{sign}.3f}"
    return (
        mean if found.low is None or found.high is None else f"{mean} ({found.low:{sign}.2f} to {found.high:{sign}.2f})"
    )
