"""The `agree` command: reads the labels of a run and a file of human labels, matches their chains and compares them. Step
scores take the labels' place with `scores`, see `agree.judge`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline.analysis.agree.human import ChainPair, MatchedChains, ModelChain, RowCounts, Unusable, match, subsets
from pipeline.analysis.agree.judge import MAX_LISTED, ScoreAgreement, judge
from pipeline.analysis.agree.read import read_humans
from pipeline.analysis.agree.rulings import (
    FirstErrorScores,
    Ruling,
    baselines,
    by_label,
    by_opinion,
    by_threshold,
    first_errors,
)
from pipeline.analysis.agree.score_sections import page_of
from pipeline.analysis.agree.steps import Reliability, StepLabels, reliability, step_labels
from pipeline.analysis.agree.verifiers import VerifierAgreement, verifier_agreements
from pipeline.analysis.comparison import CONFIDENCE
from pipeline.analysis.settings import BINS, AgreeConfig
from pipeline.config.choices import ValueColumn
from pipeline.config.consensus import cap_text
from pipeline.consensus.kept import witness_places
from pipeline.core.errors import InputError, UsageError
from pipeline.core.records import Origin
from pipeline.core.tables import LABELS
from pipeline.data.rows import input_files
from pipeline.display.document import GENERATOR
from pipeline.display.page import html
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign, refuse_overwriting
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import refuse_without
from pipeline.storage.stored_run import StoredRun, readable_run

_COLUMNS = (
    "chain_id", "problem_id", "source_id", "problem", "steps", "value", "unbiased_value", "origin", "label", "outcome",
    "estimator", "label_rule", "policy", "mc_label", "p_no_drop", "p_error_free", "opinions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelProvenance:
    """How the labels were made. `soft`: the column that supplies their values. `capped`: see `cap_text`."""

    estimator: str
    label_rule: str
    policy: str
    soft: str
    capped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeCounts(RowCounts):
    """`rows` = `unusable` + `repeated` + `unmatched` + `compared`; `labelled` chains of the run = `compared` + `not_by_people`.

    `open`: compared chains whose human ratings leave the first error open. `kept`: compared chains that have labels by
    consensus; None for labels by another rule.
    """

    compared: int
    open: int
    labelled: int
    not_by_people: int
    kept: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodComparison:
    """How one ruling agrees. `threshold`: None for the run's own labels and for baselines. `steps`: None for a baseline."""

    name: str
    threshold: float | None
    first_errors: FirstErrorScores
    steps: StepLabels | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The whole report, with the keys of the JSON file. `owed_units`: units of the run that are not labelled yet. `rulings` are
    of all compared chains; one that consensus leaves out is uncertain. `kept`: the same labels, Monte Carlo's and those of each
    witness, on the chains that consensus keeps alone; empty for labels by another rule. `verifiers`: those that have
    checked the run."""

    run_dir: str
    data: str
    made: LabelProvenance
    owed_units: int
    neutral: str
    confidence: float
    resamples: int
    counts: AgreeCounts
    unusable: tuple[Unusable, ...]
    rulings: tuple[MethodComparison, ...]
    reliability: Reliability
    kept: tuple[MethodComparison, ...] = ()
    verifiers: tuple[VerifierAgreement, ...] = ()


def agree(config: AgreeConfig) -> Agreement | ScoreAgreement:
    """Compare the labels of the run, or the scores, with human labels. Writes the report if `out` names a file, and the page of
    scores.

    Raises UsageError for an output that cannot be written or is one of the inputs, for a missing run, a run of another schema,
    a run without labels, or an unfinished run without `partial`; InputError for a file that cannot be read, has no human labels
    or shares no chain with the run or the scores, and as `judge` does; StoreError.
    """
    return of_run(config) if config.scores is None else of_scores(config)


def of_run(config: AgreeConfig) -> Agreement:
    """Compare the labels of the run with human labels, see `agree`."""
    assert config.run_dir is not None
    _check_outputs(config, [folder_at(config.run_dir)])
    storage = storage_at(config.run_dir)
    run = readable_run(storage, partial=config.partial)
    humans, unusable = read_humans(config)
    refuse_without(run, config.soft)
    made, labelled = _labelled(storage, run, config.soft)
    matched = match(humans, labelled)
    if not matched.pairs:
        raise InputError(_no_overlap(config, matched, len(labelled)))
    kept = _kept(matched.pairs)
    chains = [pair.labelled for pair in matched.pairs]
    by_thresholds = (by_threshold(chains, threshold) for threshold in config.thresholds)
    rulings = [*_labels(config, made, chains), *by_thresholds, *baselines(chains)]
    report = Agreement(
        run_dir=config.run_dir,
        data=config.data.path,
        made=made,
        owed_units=run.unfinished,
        neutral=config.neutral.value,
        confidence=CONFIDENCE,
        resamples=config.resamples,
        counts=AgreeCounts(
            **matched.counts(len(unusable)),
            compared=len(matched.pairs),
            open=sum(pair.human.first_error is None for pair in matched.pairs),
            labelled=len(labelled),
            not_by_people=matched.unmatched_labelled,
            kept=len(kept) if any(pair.labelled.mc_labels is not None for pair in matched.pairs) else None,
        ),
        unusable=tuple(unusable[:MAX_LISTED]),
        rulings=tuple(_judged(config, matched.pairs, rulings)),
        reliability=reliability(matched.pairs, BINS),
        kept=tuple(_judged(config, kept, _labels(config, made, [pair.labelled for pair in kept]) if kept else [])),
        verifiers=tuple(verifier_agreements(storage, matched.pairs)),
    )
    _write(config, report)
    return report


def page_path(config: AgreeConfig) -> Path | None:
    """Where the page of scores is written; None for none."""
    if config.page is not None:
        return Path(config.page).expanduser()
    return None if config.out is None else Path(config.out).with_suffix(".html")


def of_scores(config: AgreeConfig) -> ScoreAgreement:
    """Judge step scores, see `agree`."""
    assert config.scores is not None
    _check_outputs(config, [Path(config.scores).expanduser()])
    report = judge(config)
    _write(config, report)
    page = page_path(config)
    if page is not None:
        with atomic_file(page) as file:
            file.write(html(page_of(report, config)))
    return report


def _write(config: AgreeConfig, report: Agreement | ScoreAgreement) -> None:
    if config.out is not None:
        with atomic_file(Path(config.out)) as file:
            file.write((json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n").encode())


def _check_outputs(config: AgreeConfig, inputs: Sequence[Path]) -> None:
    """Raise UsageError for an output that cannot be written, is an input, or is a file of another kind."""
    page = page_path(config) if config.scores is not None else None
    outputs = {key: path for key, path in (("out", config.out and Path(config.out)), ("page", page)) if path}
    for key, path in outputs.items():
        check_output_file(key, path)
    refuse_overwriting(outputs, [*input_files(config.data.path), *inputs])
    if page is not None:
        refuse_foreign("page", page, GENERATOR, "report")


def _labelled(storage: Storage, run: StoredRun, soft: ValueColumn) -> tuple[LabelProvenance, list[ModelChain]]:
    """All labelled chains of the run. Raises UsageError for a run without any."""
    rows = run.rows(LABELS, _COLUMNS)
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{storage.run_dir} holds no labels: see its rejects/, or wait until `label` has written some")
    recorded = {name: first[name] for name in ("estimator", "label_rule", "policy")}
    made = LabelProvenance(**recorded, soft=soft.value, capped=cap_text(run.settings))
    return made, [_labelled_chain(row, soft) for row in chain((first,), rows)]


def _labelled_chain(row: Mapping[str, Any], soft: ValueColumn) -> ModelChain:
    return ModelChain(
        chain_id=row["chain_id"],
        problem_id=row["problem_id"],
        source_id=row["source_id"],
        problem=row["problem"],
        steps=tuple(row["steps"]),
        values=tuple(row[soft.value]),
        labels=tuple(row["label"]),
        outcome=row["outcome"],
        terminal=row["origin"][-1] == Origin.TERMINAL and soft is not ValueColumn.p_error_free,
        mc_labels=None if row["mc_label"] is None else tuple(row["mc_label"]),
        places={} if row["mc_label"] is None else witness_places(row["opinions"]),
    )


def _no_overlap(config: AgreeConfig, matched: MatchedChains, n_labelled: int) -> str:
    remedy = (
        f"{matched.other_text} of their ids are in the run with other texts; read this file with the run's data.separator, "
        "data.splitter and data.columns"
        if matched.other_text
        else f"label them first: label data=... data.path={config.data.path}"
    )
    return (
        f"data.path: none of the {len(matched.unmatched)} chains of {config.data.path} is among the {n_labelled} chains of "
        f"run_dir={config.run_dir}: {remedy}"
    )


def _kept(pairs: Sequence[ChainPair]) -> list[ChainPair]:
    """The chains that consensus keeps. Empty for labels by another rule."""
    labelled = [pair for pair in pairs if any(label is not None for label in pair.labelled.labels)]
    return [pair for pair in labelled if pair.labelled.mc_labels is not None]


def _labels(config: AgreeConfig, made: LabelProvenance, chains: Sequence[ModelChain]) -> list[Ruling]:
    """The run's own labels, and the opinions of which they are made."""
    return [by_label(chains, f"label ({made.label_rule})", config.neutral), *by_opinion(chains, config.neutral)]


def _judged(config: AgreeConfig, pairs: Sequence[ChainPair], rulings: Sequence[Ruling]) -> Iterator[MethodComparison]:
    names = subsets(pairs)
    for ruling in rulings:
        yield MethodComparison(
            name=ruling.name,
            threshold=ruling.threshold,
            first_errors=first_errors(pairs, names, ruling, config.resamples),
            steps=step_labels(pairs, ruling, config.resamples),
        )
