"""The staged input of a start: as the run has it, staged for the first time, staged again after damage, or grown."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pipeline.config.label import LabelConfig
from pipeline.core.errors import InputError, StoreError, other_job
from pipeline.core.output import say
from pipeline.graders.registry import checker_for
from pipeline.runtime.growth import grow, growth_line
from pipeline.runtime.intake import stage
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    RecordSequence,
    completions,
    publish,
    record_sequence,
    resolve,
    sequence_lengths,
)
from pipeline.storage.repair import repair
from pipeline.storage.run_record import STAGED_INPUT, has_input, settings_copy, with_input
from pipeline.storage.storage import Storage
from pipeline.storage.units import units_of


def staged_input(
    storage: Storage,
    config: LabelConfig,
    run_identity: Mapping[str, object],
    asked: Mapping[str, object],
    check: Callable[[], None],
) -> tuple[Commit, list[str]]:
    """The record of the staged input, and the names of its damaged files. What is new in a grown input is staged and reported.

    `asked`: the identity of this start. `check` is called before each row and may raise. Raises InputError, RunConflict and
    StoreError.
    """
    news = ""

    def made(found: RecordSequence, known: Commit | None) -> Commit:
        nonlocal news
        settings = settings_copy(with_input(run_identity, asked))
        if known is not None:
            with checker_for(config.grader) as checker:
                grown = grow(storage, known, config.data, config.run, checker, check)
            news = growth_line(storage, known, grown, config.sampling.rollouts)
            return replace(grown, settings=settings)
        if completions(found):
            return _as_it_was(storage, config, found, check)
        if not has_input({}, run_identity, asked):
            raise InputError(
                f"the record of the input of {storage.run_dir} is lost, and the input has grown since it was written: "
                "start once with the input as it was, then with the grown one"
            )
        with checker_for(config.grader) as checker:
            first = stage(storage, found.sequence_id, config.data, config.run, checker, check)
        return replace(first, settings=settings)

    staged, damaged = staged_by(made, storage, run_identity, asked)
    if news:
        say(news)
    return staged, damaged


def staged_by(
    make: Callable[[RecordSequence, Commit | None], Commit],
    storage: Storage,
    run_identity: Mapping[str, object],
    asked: Mapping[str, object],
) -> tuple[Commit, list[str]]:
    """The record of the staged input, and the names of its damaged files.

    `make`: stages what is missing, and returns the record to publish next; it gets the records that there are, and the intact
    one, if any. Raises what it raises, RunConflict and StoreError.
    """
    staged_id = str(run_identity[STAGED_INPUT])
    found, damaged = repair(storage, _sequence(storage, staged_id))
    known = resolve(found).whole
    while known is None or not has_input(known.recorded, run_identity, asked):
        made = replace(make(found, known), number=found.length)
        won = publish(storage, made)
        found = _sequence(storage, staged_id)
        known = made if won else resolve(found).whole
        if known is None or known.settings != made.settings:
            raise other_job(storage.run_dir)
    return known, damaged


def refuse_other_units(storage: Storage, staged: Commit, fault: str) -> None:
    """Raise StoreError where units were begun that a staged input does not have. `fault`: the file that is damaged, and what is
    wrong with the present input."""
    begun = sequence_lengths(storage, UNIT).keys()
    if begun and not begun <= {unit.unit_id for unit in units_of(storage, staged)}:
        raise StoreError(f"a file in {storage.run_dir}/{fault} in the earlier order, or restore the file from a copy")


def _as_it_was(storage: Storage, config: LabelConfig, found: RecordSequence, check: Callable[[], None]) -> Commit:
    """The input whose files are damaged, staged again as it was, also if it has grown since."""
    history = completions(found)
    records = [commit for commit, _ in history]
    intact = [commit for commit, files in history if files == commit.shards]
    with checker_for(config.grader) as checker:
        if intact:
            staged = intact[-1]
        else:
            data = replace(config.data, limit=records[0].totals.rows)
            again = stage(storage, found.sequence_id, data, config.run, checker, check)
            staged = replace(records[0], shards=again.shards, tally=again.tally)
        for commit in (commit for commit in records if commit.totals.rows > staged.totals.rows):
            data = replace(config.data, limit=commit.totals.rows)
            grown = grow(storage, staged, data, config.run, checker, check)
            staged = replace(grown, number=commit.number)
    fault = "inputs is damaged, and the input does not begin with the same rows as when it was read: give it"
    refuse_other_units(storage, staged, fault)
    return replace(staged, settings=records[-1].settings)


def _sequence(storage: Storage, staged_id: str) -> RecordSequence:
    return record_sequence(storage, INPUT, staged_id, sequence_lengths(storage, INPUT).get(staged_id, 0))
