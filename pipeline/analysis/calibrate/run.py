"""The `calibrate` command: reads step scores and a run's rollouts, fits the calibration, judges it, and writes it."""

import json
from pathlib import Path

from pipeline import __version__
from pipeline.analysis.agree.read import StepScores, read_step_scores
from pipeline.analysis.calibrate.fit import choose, cross_fitted, fit_maps, position_maps, step_groups
from pipeline.analysis.calibrate.prefixes import COLUMNS, PrefixCounts, ScoredPrefixes, Trials, match_prefixes
from pipeline.analysis.calibrate.report import BeforeAfter, CalibrationReport, figures_of, reliability
from pipeline.analysis.calibrate.sections import page_of
from pipeline.analysis.comparison import CONFIDENCE
from pipeline.analysis.settings import BINS, CalibrateConfig
from pipeline.core.errors import InputError, UsageError
from pipeline.core.formatting import first_of, format_count
from pipeline.core.records import GROWN
from pipeline.core.statistics import Floats
from pipeline.core.tables import LABELS
from pipeline.display.document import GENERATOR
from pipeline.display.page import html
from pipeline.scorers.calibration import FORMAT, TARGET, Calibration, MadeFrom, encode
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign, refuse_overwriting
from pipeline.storage.stored_run import readable_run

PROBLEMS_PER_FOLD = 2
"""Least number of problems in a fold: with fewer, a fold would be one problem's whim."""
_MODEL_RECORD = "train.json"
"""What `train` writes into the folder of a model: the settings that it was trained with."""


def calibrate(config: CalibrateConfig) -> CalibrationReport:
    """Make the calibration and write it, with its figures and its page, whole or not at all.

    Raises UsageError for an output that cannot be written or is one of the inputs, for a missing run, a run of another schema,
    an unfinished run without `partial`, or a model that was trained on this run; InputError for scores that cannot be read or
    are not between 0 and 1, that are of other chains, or of too few prefixes or problems; StoreError.
    """
    _check_outputs(config)
    scores = read_step_scores(config.scores)
    _refuse_training_run(scores, config)
    storage = storage_at(config.run_dir)
    run = readable_run(storage, partial=config.partial)
    # Prefixes that `grow` promoted are no sample of what the policy writes: rollouts chose them.
    rows = (row for row in run.rows(LABELS, (*COLUMNS, GROWN)) if not row[GROWN])
    found = match_prefixes(scores.chains, rows)
    _refuse_few(config, scores, found.counts)
    report = _report(config, scores, found, run.unfinished)
    with atomic_file(Path(config.out).expanduser()) as file:
        file.write(f"{encode(report.calibration, figures_of(report))}\n".encode())
    with atomic_file(page_path(config)) as file:
        file.write(html(page_of(report, config)))
    return report


def page_path(config: CalibrateConfig) -> Path:
    """Where the page is written."""
    return Path(config.out).expanduser().with_suffix(".html") if config.page is None else Path(config.page).expanduser()


def _report(config: CalibrateConfig, scores: StepScores, found: ScoredPrefixes, owed_units: int) -> CalibrationReport:
    trials = found.trials
    groups = step_groups(trials.steps, config.group_prefixes)
    choice = choose(groups, trials, config.folds)
    maps = fit_maps(choice.kind, groups, trials)
    after, after_ends = cross_fitted(groups, trials, config.folds, found.ends)
    counts = found.counts
    calibration = Calibration(
        kind=choice.kind,
        confidence=CONFIDENCE,
        made_from=MadeFrom(
            model=scores.model or "",
            policy=found.policy,
            run_dir=config.run_dir,
            estimator=found.estimator,
            chains=counts.chains,
            problems=counts.problems,
            prefixes=counts.prefixes,
            rollouts=counts.rollouts,
            stepvalue=__version__,
        ),
        maps=tuple(position_maps(maps, trials)),
    )
    return CalibrationReport(
        calibration=calibration,
        target=TARGET,
        scores=config.scores,
        files=scores.files,
        folds=config.folds,
        owed_units=owed_units,
        counts=counts,
        choice=choice,
        total=_before_after("all steps", trials, after),
        groups=tuple(
            _before_after(group.name, trials.part(held), after[held])
            for group, held in ((each, each.holds(trials.steps)) for each in groups)
        ),
        ends=_before_after("last steps", found.ends, after_ends) if len(found.ends) else None,
        given=None if found.calibrated is None else reliability(found.calibrated, trials, BINS),
    )


def _before_after(name: str, trials: Trials, after: Floats) -> BeforeAfter:
    before, calibrated = (reliability(each, trials, BINS) for each in (trials.scores, after))
    return BeforeAfter(name=name, before=before, after=calibrated)


def _check_outputs(config: CalibrateConfig) -> None:
    """Raise UsageError for an output that cannot be written, is an input, or is a file of another kind."""
    outputs = {"out": Path(config.out).expanduser(), "page": page_path(config)}
    for key, path in outputs.items():
        check_output_file(key, path)
    refuse_overwriting(outputs, [Path(config.scores).expanduser(), folder_at(config.run_dir)])
    refuse_foreign("out", outputs["out"], FORMAT, "calibration")
    refuse_foreign("page", outputs["page"], GENERATOR, "report")


def _refuse_training_run(scores: StepScores, config: CalibrateConfig) -> None:
    """Raise UsageError if `train` made the model from this run: its scores fit these rollouts better than any others."""
    if not scores.model:
        return
    try:
        record = json.loads((Path(scores.model).expanduser() / _MODEL_RECORD).read_bytes())
        trained_on = record["settings"]["run_dir"]
        same = Path(trained_on).expanduser().resolve() == Path(config.run_dir).expanduser().resolve()
    except (OSError, ValueError, KeyError, TypeError):
        return
    if same or trained_on == config.run_dir:
        raise UsageError(
            f"run_dir={config.run_dir}: {scores.model} was trained on the labels of this run, so its scores fit these rollouts "
            "better than new ones. Label other problems with the policy, score their chains, and calibrate with that run"
        )


def _refuse_few(config: CalibrateConfig, scores: StepScores, counts: PrefixCounts) -> None:
    """Raise InputError if the scores and the run have too little in common."""
    named = f"scores={config.scores}"
    if not counts.matched:
        raise InputError(
            f"{named}: none of the {format_count(counts.scored, 'chain')} of {first_of(scores.files)} is among the "
            f"{format_count(counts.labelled, 'chain')} of run_dir={config.run_dir}. Score the chains of that run: "
            f"score model=... run_dir={config.run_dir} out=..."
        )
    if not counts.prefixes and counts.biased:
        raise InputError(
            f"run_dir={config.run_dir}: its estimator has no unbiased values, because its numbers of rollouts depend on "
            "outcomes. Label the chains with estimator=fixed"
        )
    if counts.prefixes < config.least_prefixes:
        raise InputError(
            f"{named}: only {format_count(counts.prefixes, 'prefix')} of {format_count(counts.steps, 'step')} in "
            f"{format_count(counts.chains, 'chain')} {'has' if counts.prefixes == 1 else 'have'} a score and rollouts of "
            f"run_dir={config.run_dir}, and a calibration needs {config.least_prefixes:,}. Label more chains and score them; a "
            "smaller least_prefixes allows a rough calibration"
        )
    needed = PROBLEMS_PER_FOLD * config.folds
    if counts.problems < needed:
        raise InputError(
            f"{named}: the {counts.prefixes:,} prefixes are of {format_count(counts.problems, 'problem')}, and "
            f"folds={config.folds} needs {needed}, because a calibration is judged on problems that it was not fitted to. "
            "Label chains of more problems"
        )
