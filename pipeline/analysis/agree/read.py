"""Reads files of step scores, and the file of human labels, as chains that can be compared, and refuses what cannot be meant as
it is.

A score is a number from 0 to 1, or null where a step did not fit into the model. Exactly 0 is a score. There is one per step: a
text that ends in its separator has no empty step after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.analysis.agree.human import (
    HumanChain,
    MiscountedRow,
    ModelChain,
    Unusable,
    human_chains,
    original_chains,
    text_key,
)
from pipeline.analysis.settings import AgreeConfig
from pipeline.config.choices import Layout
from pipeline.core.errors import InputError
from pipeline.core.formatting import first_of, format_count
from pipeline.core.records import RowLocation
from pipeline.core.tables import RAW_STEP_SCORES
from pipeline.data.rows import read_rows
from pipeline.storage.score_files import read_score_file, score_files

KEY = "scores"
_SCORES = "step_scores"
_WANTED = ("problem", "steps", _SCORES)
_OPTIONAL = ("source_id", "outcome", "model", RAW_STEP_SCORES)
_ROW = "row"
_NOISE = 1e-4
"""Scores of one chain that differ by less are the same: a model computes with other roundings in another batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScores:
    """All chains, each text once. `model`: what scored them. `calibrated`: whether a calibration changed the scores.
    `repeated`: rows with the text and the scores of an earlier one."""

    files: tuple[str, ...]
    model: str | None
    calibrated: bool
    chains: tuple[ModelChain, ...]
    repeated: int


def read_step_scores(name: str) -> StepScores:
    """The chains of a file or a folder of files. Raises InputError for files of several models, for calibrated scores beside
    others, and for a chain with other scores than an earlier row, with more or fewer scores than steps, or with a score that is
    not between 0 and 1."""
    paths = score_files(KEY, Path(name).expanduser())
    models: dict[str, Path] = {}
    kinds: dict[bool, Path] = {}
    chains: dict[tuple[str, ...], ModelChain] = {}
    repeated = 0
    for path in paths:
        frame = read_score_file(KEY, path, _WANTED, _OPTIONAL).with_row_index(_ROW, offset=1)
        _check(frame, path)
        calibrated = frame[RAW_STEP_SCORES].is_not_null()
        if calibrated.any():
            _check_scores(frame.filter(calibrated), path, RAW_STEP_SCORES)
        for each in calibrated.unique().sort().to_list():
            kinds.setdefault(each, path)
        if len(kinds) > 1:
            raise InputError(
                f"{KEY}={name} holds calibrated scores ({kinds[True]}) and others ({kinds[False]}): name files of one kind"
            )
        for model in frame["model"].drop_nulls().unique().sort():
            models.setdefault(model, path)
        for scored in _chains(frame, path):
            before = chains.setdefault(text_key(scored), scored)
            if before is not scored:
                repeated += 1
                chains[text_key(scored)] = _same(before, scored)
    if len(models) > 1:
        places = first_of([f"{model} ({path})" for model, path in models.items()])
        raise InputError(f"{KEY}={name} holds scores of {len(models)} models, {places}: name the file of one of them")
    return StepScores(
        files=tuple(map(str, paths)),
        model=next(iter(models), None),
        calibrated=True in kinds,
        chains=tuple(chains.values()),
        repeated=repeated,
    )


def _chains(frame: pl.DataFrame, path: Path) -> Iterator[ModelChain]:
    for row in frame.iter_rows(named=True):
        raw = row[RAW_STEP_SCORES]
        yield ModelChain(
            location=RowLocation(file=str(path), line=row[_ROW]),
            chain_id="",
            problem_id="",
            source_id=row["source_id"],
            problem=row["problem"],
            steps=tuple(row["steps"]),
            values=tuple(row[_SCORES]),
            raw=None if raw is None else tuple(raw),
            outcome=row["outcome"],
        )


def _same(before: ModelChain, again: ModelChain) -> ModelChain:
    """One of two rows of a chain; it has an outcome if one of them has."""
    if not all(map(_equal, before.values, again.values)):
        one, other = again.location, before.location
        raise InputError(
            f"{KEY}: row {one.line} of {one.file} and row {other.line} of {other.file} are the same chain with other "
            "scores: name a file with one scoring"
        )
    return before if before.outcome is not None else replace(before, outcome=again.outcome)


def _equal(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and abs(one - other) <= _NOISE)


def _check(frame: pl.DataFrame, path: Path) -> None:
    steps, scores = pl.col("steps"), pl.col(_SCORES)
    empty = pl.col("problem").is_null() | steps.is_null() | scores.is_null() | (steps.list.len() == 0)
    if (row := _first(frame, empty)) is not None:
        raise InputError(
            f"{KEY}: row {row[_ROW]} of {path} lacks its problem, its steps or their scores; score it again"
        )
    blank = steps.list.eval(pl.element().is_null() | (pl.element().str.strip_chars() == "")).list.any()
    if (row := _first(frame, blank)) is not None:
        at = next(at for at, step in enumerate(row["steps"], start=1) if step is None or not step.strip())
        after = ": a text that ends in its separator has no step after it" if at == len(row["steps"]) else ""
        raise InputError(
            f"{KEY}: step {at} of {len(row['steps'])} in row {row[_ROW]} of {path} is blank{after}. Score the chains without "
            "blank steps"
        )
    _check_scores(frame, path, _SCORES)


def _check_scores(frame: pl.DataFrame, path: Path, column: str) -> None:
    """Raise InputError for another number of scores than of steps, and for scores that are not between 0 and 1."""
    steps, scores = pl.col("steps"), pl.col(column)
    other = steps.list.len() != scores.list.len()
    if (row := _first(frame, other)) is not None:
        given, wanted = len(row[column]), len(row["steps"])
        reason = (
            "Has a text that ends in its separator been scored as if an empty step followed? Leave that score out"
            if given == wanted + 1
            else "Write null for steps that did not fit into the model"
        )
        raise InputError(
            f"{KEY}: row {row[_ROW]} of {path} has {format_count(given, 'score')} for {format_count(wanted, 'step')}, and "
            f"{_count(frame, other)} of {frame.height:,} rows have another number of scores than of steps. {reason}"
        )
    beyond = scores.list.eval(~pl.element().is_between(0, 1)).list.any()  # NaN is not between them
    if (row := _first(frame, beyond)) is not None:
        at, score = next(
            (at, score) for at, score in enumerate(row[column], start=1) if score is not None and not 0 <= score <= 1
        )
        raise InputError(
            f"{KEY}: the score of step {at} in row {row[_ROW]} of {path} is {score:g}, and {_count(frame, beyond)} of "
            f"{frame.height:,} rows have scores that are not between 0 and 1. Scores are probabilities: put logits and rewards "
            "through a sigmoid, and write null for a step without a score"
        )


def _first(frame: pl.DataFrame, condition: pl.Expr) -> dict[str, Any] | None:
    return next(frame.filter(condition.fill_null(value=False)).head(1).iter_rows(named=True), None)


def _count(frame: pl.DataFrame, condition: pl.Expr) -> str:
    return f"{frame.filter(condition.fill_null(value=False)).height:,}"


def read_humans(config: AgreeConfig) -> tuple[list[HumanChain], list[Unusable]]:
    """The chains with human labels, and the rows that have none. Raises InputError if no row has one."""
    rows = read_rows(config.data.path, config.data.limit)
    found = list(human_chains(rows, config.data, config.column, config.neutral))
    humans = [each for each in found if isinstance(each, HumanChain)]
    unusable = [each for each in found if isinstance(each, Unusable)]
    if not humans:
        reasons = [f"; line {row.location.line} of {row.location.file}: {row.detail}" for row in unusable[:1]]
        raise InputError(
            f"data.path: none of the {len(unusable)} rows of {config.data.path} is a chain with a human label"
            f"{''.join(reasons)}"
        )
    return humans, unusable


def read_originals(config: AgreeConfig, humans: Sequence[HumanChain]) -> list[HumanChain]:
    """PRMBench: the original processes that are not among `humans` already. Empty for other layouts."""
    if config.data.layout is not Layout.prmbench:
        return []
    taken = {text_key(human) for human in humans}
    rows = read_rows(config.data.path, config.data.limit)
    return [chain for chain in original_chains(rows, config.data) if text_key(chain) not in taken]


def refuse_miscounted(config: AgreeConfig, humans: Sequence[HumanChain], unusable: Sequence[Unusable]) -> None:
    """Raise InputError where labels seem to be counted from another number than the layout says: some rows fit only that
    way, and no chain shows the opposite.

    First errors counted from 1 never name step 0, or never say -1 where 0 stands for "no error". PRMBench's error steps counted
    from 0 never name a last step.
    """
    strange = [row for row in unusable if isinstance(row, MiscountedRow)]
    if not strange:
        return
    place = f"line {strange[0].location.line} of {strange[0].location.file}"
    who = f"{format_count(len(strange), 'row')} {'names' if len(strange) == 1 else 'name'}"
    if config.data.layout is Layout.prmbench:
        if not any(human.goods[-1] is False for human in humans):
            raise InputError(
                f"data.path: the error steps of {config.data.path} seem to be counted from 0: {who} step 0, as {place}, and "
                "none names a last step. PRMBench counts from 1: add 1 to each"
            )
        return
    firsts = {human.first_error for human in humans}
    if not {0, -1} <= firsts:
        raise InputError(
            f"data.path: the labels of {config.data.path} seem to be counted from 1: {who} the step after the last one, as "
            f"{place}, and no label is {0 if 0 not in firsts else -1}. Steps are counted from 0, and -1 means no error: "
            "subtract 1 from each"
        )
