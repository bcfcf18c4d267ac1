"""The `agree` command: reads the labels of a run and a file of human labels, matches their chains and compares them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline.analysis.agree.human import (
    ChainPair,
    HumanChain,
    MatchedChains,
    ModelChain,
    Unusable,
    human_chains,
    match,
    subsets,
)
from pipeline.analysis.agree.rulings import (
    FirstErrorScores,
    Reliability,
    StepLabels,
    baselines,
    by_label,
    by_threshold,
    first_errors,
    reliability,
    step_labels,
)
from pipeline.analysis.settings import AgreeConfig
from pipeline.config.choices import ValueColumn
from pipeline.core.errors import InputError, UsageError
from pipeline.core.records import Origin
from pipeline.core.statistics import Resampling
from pipeline.data.rows import input_files, read_rows
from pipeline.storage.location import folder_at, storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting
from pipeline.storage.storage import Storage
from pipeline.storage.stored_labels import rows_of
from pipeline.storage.stored_run import StoredRun, readable_run

MAX_LISTED = 100
"""The largest number of unusable rows that the JSON report lists."""
_COLUMNS = (
    "source_id", "problem", "steps", "value", "unbiased_value", "origin", "label", "outcome",
    "estimator", "label_rule", "policy",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelProvenance:
    """How the labels were made. `soft`: the column that supplies their values."""

    estimator: str
    label_rule: str
    policy: str
    soft: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreeCounts:
    """`rows` = `unusable` + `repeated` + `unmatched` + `compared`; `labelled` chains of the run = `compared` + `not_by_people`.

    `contradicting`: repeated rows with another label than the first row of their chain. `other_text`: unmatched rows whose id
    is in the run. `open`: compared chains whose human ratings leave the first error open.
    """

    rows: int
    unusable: int
    repeated: int
    contradicting: int
    unmatched: int
    other_text: int
    compared: int
    open: int
    labelled: int
    not_by_people: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodComparison:
    """How one ruling agrees. `threshold`: None for the run's own labels and for baselines. `steps`: None for a baseline."""

    name: str
    threshold: float | None
    first_errors: FirstErrorScores
    steps: StepLabels | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The whole report, with the keys of the JSON file. `owed_units`: units of the run that are not labelled yet."""

    run_dir: str
    data: str
    made: LabelProvenance
    owed_units: int
    neutral: str
    confidence: float
    resamples: int
    seed: int
    counts: AgreeCounts
    unusable: tuple[Unusable, ...]
    rulings: tuple[MethodComparison, ...]
    reliability: Reliability


def agree(config: AgreeConfig) -> Agreement:
    """Compare the labels of the run with human labels. Writes the report if `out` names a file.

    Raises UsageError for an `out` that cannot be written or is one of the inputs, for a missing run, a run of another schema,
    a run without labels, or an unfinished run without `partial`; InputError for a file that cannot be read, has no human labels
    or shares no chain with the run; StoreError.
    """
    _check_out(config)
    storage = storage_at(config.run_dir)
    run = readable_run(storage, partial=config.partial)
    humans, unusable = _humans(config)
    made, labelled = _labelled(storage, run, config.soft)
    matched = match(humans, labelled)
    if not matched.pairs:
        raise InputError(_no_overlap(config, matched, len(labelled)))
    report = Agreement(
        run_dir=config.run_dir,
        data=config.data.path,
        made=made,
        owed_units=run.incomplete,
        neutral=config.neutral.value,
        confidence=config.confidence,
        resamples=config.resamples,
        seed=config.seed,
        counts=_counts(matched, n_unusable=len(unusable), n_rows=len(humans) + len(unusable), n_labelled=len(labelled)),
        unusable=tuple(unusable[:MAX_LISTED]),
        rulings=tuple(_compared(config, made, matched.pairs)),
        reliability=reliability(matched.pairs, config.bins, config.confidence),
    )
    if config.out is not None:
        with atomic_file(Path(config.out)) as file:
            file.write((json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n").encode())
    return report


def _check_out(config: AgreeConfig) -> None:
    if config.out is not None:
        check_output_file("out", Path(config.out))
        refuse_overwriting({"out": Path(config.out)}, [*input_files(config.data.path), folder_at(config.run_dir)])


def _humans(config: AgreeConfig) -> tuple[list[HumanChain], list[Unusable]]:
    humans: list[HumanChain] = []
    unusable: list[Unusable] = []
    rows = read_rows(config.data.path, config.data.limit)
    for found in human_chains(rows, config.data, config.column, config.neutral):
        if isinstance(found, Unusable):
            unusable.append(found)
        else:
            humans.append(found)
    if not humans:
        reason = (
            f"; line {unusable[0].location.line} of {unusable[0].location.file}: {unusable[0].detail}"
            if unusable
            else ""
        )
        raise InputError(
            f"data.path: none of the {len(unusable)} rows of {config.data.path} is a chain with a human label{reason}"
        )
    return humans, unusable


def _labelled(storage: Storage, run: StoredRun, soft: ValueColumn) -> tuple[LabelProvenance, list[ModelChain]]:
    """All labelled chains of the run. Raises UsageError for a run without any."""
    rows = rows_of(storage, run, _COLUMNS)
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{storage.run_dir} holds no labels: see its rejects/, or wait until `label` has written some")
    made = LabelProvenance(
        estimator=first["estimator"], label_rule=first["label_rule"], policy=first["policy"], soft=soft.value
    )
    return made, [_labelled_chain(row, soft) for row in chain((first,), rows)]


def _labelled_chain(row: Mapping[str, Any], soft: ValueColumn) -> ModelChain:
    return ModelChain(
        source_id=row["source_id"],
        problem=row["problem"],
        steps=tuple(row["steps"]),
        values=tuple(row[soft.value]),
        labels=tuple(row["label"]),
        outcome=row["outcome"],
        terminal=row["origin"][-1] == Origin.TERMINAL,
    )


def _no_overlap(config: AgreeConfig, matched: MatchedChains, n_labelled: int) -> str:
    remedy = (
        f"{matched.other_text} of their ids are in the run with other texts; read this file with the run's data.separator, "
        "data.splitter and data.columns"
        if matched.other_text
        else f"label them first: label data=... data.path={config.data.path}"
    )
    return (
        f"data.path: none of the {matched.unmatched_human} chains of {config.data.path} is among the {n_labelled} chains of "
        f"run_dir={config.run_dir}: {remedy}"
    )


def _counts(matched: MatchedChains, *, n_unusable: int, n_rows: int, n_labelled: int) -> AgreeCounts:
    return AgreeCounts(
        rows=n_rows,
        unusable=n_unusable,
        repeated=matched.repeated,
        contradicting=matched.contradicting,
        unmatched=matched.unmatched_human,
        other_text=matched.other_text,
        compared=len(matched.pairs),
        open=sum(pair.human.first_error is None for pair in matched.pairs),
        labelled=n_labelled,
        not_by_people=matched.unmatched_labelled,
    )


def _compared(config: AgreeConfig, made: LabelProvenance, pairs: Sequence[ChainPair]) -> Iterator[MethodComparison]:
    chains = [pair.labelled for pair in pairs]
    names = subsets(pairs)
    resampling = Resampling(replicates=config.resamples, seed=config.seed, confidence=config.confidence)
    own = by_label(chains, f"label ({made.label_rule})", config.neutral)
    for ruling in (own, *(by_threshold(chains, threshold) for threshold in config.thresholds), *baselines(chains)):
        yield MethodComparison(
            name=ruling.name,
            threshold=ruling.threshold,
            first_errors=first_errors(pairs, names, ruling, resampling),
            steps=step_labels(pairs, ruling, resampling),
        )
