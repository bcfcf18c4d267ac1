"""What the second lap came to: labels with and without the witness, and what PRMs that learned from them choose."""

import json
from collections.abc import Mapping

import numpy as np
import polars as pl

from pipeline.analysis.select.methods import CandidateSet, best_of
from pipeline.analysis.select.read import match_answers, read_scores
from pipeline.analysis.settings import SelectConfig
from pipeline.core.statistics import Floats, Interval, bootstrap
from tests.bench.loop.judgement import LabelsCount, Ranking, counted, ranking
from tests.bench.loop.plan import CANDIDATES, SEED, STEP, Files
from tests.bench.loop.transfer import ALONE, CONSENSUS, EXACT, MC
from tests.bench.loop.truth import error_free
from tests.tiny.arithmetic import Exercise

Exercises = Mapping[str, Exercise]
_MODELS = {
    MC: "values by Monte Carlo",
    ALONE: "posterior, no witness",
    CONSENSUS: "posterior with the PRM",
    STEP: "the first lap",
}
"""What a PRM has learned from."""


def transfer(files: Files, others: Exercises, test: Exercises) -> list[str]:
    """Lines with all figures."""
    labels = pl.read_parquet(files.other_run / "labels" / "*.parquet")
    exact, alone = (pl.read_parquet(files.kept_labels(name)) for name in (EXACT, ALONE))
    figures = {
        "value by Monte Carlo": _ranking(labels, "value", others),
        "score of the PRM": _ranking(pl.read_parquet(files.other_scores), "step_scores", others),
        "p_error_free, no witness": _ranking(alone, "p_error_free", others),
        "p_error_free with the PRM": _ranking(labels, "p_error_free", others),
    }
    hard = {
        "labels by Monte Carlo": _counted(labels, "mc_label", others),
        "exact": _counted(exact, "label", others),
        "posterior, no witness": _counted(alone, "label", others),
        "posterior with the PRM": _counted(labels, "label", others),
    }
    return [
        f"{labels.height:,} chains of {labels['problem_id'].n_unique():,} problems",
        *(f"  {name:<26} {found.shown()}" for name, found in (figures | hard).items()),
        "PRMs on the candidates of the first lap, by what they have learned from",
        *(f"  {line}" for line in _choices(files, test)),
    ]


def _choices(files: Files, test: Exercises) -> list[str]:
    """How the PRMs rank steps of the candidates, and what they choose among all candidates of a problem."""
    lines = []
    for labels, name in _MODELS.items():
        steps = _ranking(pl.read_parquet(files.scores(labels)), "step_scores", test)
        methods = _accuracies(files, labels)
        lines.append(
            f"{name:<26} {steps.shown()}; best of {CANDIDATES} {methods['prm']}, weighted vote {methods['weighted']}, "
            f"majority vote {methods['majority']}"
        )
    chances = {labels: best_chances(files, labels) for labels in (MC, ALONE, CONSENSUS)}
    own = chances.pop(CONSENSUS)
    gains = bootstrap(np.stack([own - other for other in chances.values()], axis=1), SEED)
    return [
        *lines,
        *(
            f"best of {CANDIDATES}, {_MODELS[CONSENSUS]} minus {_MODELS[labels]}: {_shown(gain, '+')}"
            for labels, gain in zip(chances, gains, strict=True)
        ),
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
