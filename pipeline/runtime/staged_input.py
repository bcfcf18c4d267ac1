"""The staged input of a start: as the run has it, staged for the first time, staged again after damage, or grown."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pipeline.config.label import LabelConfig
from pipeline.core.errors import InputError, StoreError, other_job
from pipeline.core.output import say
from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from pipeline.runtime.growth import grow, growth_line
from pipeline.runtime.intake import stage
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    completions,
    publish,
    record_sequences,
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
    staged_id = str(run_identity[STAGED_INPUT])
    found, damaged = repair(storage, _sequence(storage, staged_id))
    known = resolve(found).whole
    if known and has_input(known.settings, run_identity, asked):
        return known, damaged
    with checker_for(config.grader) as checker:
        staging = _Staging(storage, config, checker, check)
        if known is None:
            known = staging.first(found, run_identity, asked)
        if not has_input(known.settings, run_identity, asked):
            known = staging.grown(known, settings_copy(with_input(run_identity, asked)))
    return known, damaged


class _Staging:
    def __init__(self, storage: Storage, config: LabelConfig, checker: Checker, check: Callable[[], None]) -> None:
        self._storage = storage
        self._config = config
        self._checker = checker
        self._check = check

    def first(self, found: RecordSequence, identity: Mapping[str, object], asked: Mapping[str, object]) -> Commit:
        """Stage the input of a run that has none, or whose files are damaged; then as it was, also if it has grown since."""
        history = completions(found)
        if not history:
            return self._published(self._whole_input(found, identity, asked))
        intact = [commit for commit, files in history if files == commit.shards]
        staged = intact[-1] if intact else self._first_rows(history[0][0])
        for commit in (commit for commit, _ in history if commit.totals.rows > staged.totals.rows):
            data = replace(self._config.data, limit=commit.totals.rows)
            grown = grow(self._storage, staged, data, self._config.run, self._checker, self._check)
            staged = replace(staged, shards=grown.shards, totals=grown.totals, number=commit.number)
        begun = sequence_lengths(self._storage, UNIT).keys()
        if not begun <= {unit.unit_id for unit in units_of(self._storage, staged)}:
            raise StoreError(
                f"a file in {self._storage.run_dir}/inputs is damaged, and the input does not begin with the same rows as when "
                "it was read: give it in the earlier order, or restore the file from a copy"
            )
        return self._published(replace(staged, number=found.length, settings=history[-1][0].settings))

    def grown(self, staged: Commit, settings: tuple[tuple[str, str], ...]) -> Commit:
        """The record of the grown input."""
        config = self._config
        grown = grow(self._storage, staged, config.data, config.run, self._checker, self._check)
        commit = replace(
            staged,
            number=_sequence(self._storage, staged.sequence_id).length,
            shards=grown.shards,
            totals=grown.totals,
            settings=settings,
        )
        published = self._published(commit)
        if line := growth_line(grown, config.sampling.rollouts):
            say(line)
        return published

    def _whole_input(
        self, found: RecordSequence, identity: Mapping[str, object], asked: Mapping[str, object]
    ) -> Commit:
        if not has_input((), identity, asked):
            raise InputError(
                f"the record of the input of {self._storage.run_dir} is lost, and the input has grown since it was written: "
                "start once with the input as it was, then with the grown one"
            )
        config = self._config
        staged = stage(self._storage, found.sequence_id, config.data, config.run, self._checker, self._check)
        return Commit(
            kind=INPUT,
            sequence_id=found.sequence_id,
            number=found.length,
            state=CommitState.WHOLE,
            shards=staged.shards,
            totals=staged.totals,
            settings=settings_copy(identity),
        )

    def _first_rows(self, commit: Commit) -> Commit:
        """The input again that a record describes. Its files are damaged."""
        config = self._config
        data = replace(config.data, limit=commit.totals.rows)
        staged = stage(self._storage, commit.sequence_id, data, config.run, self._checker, self._check)
        return replace(commit, shards=staged.shards, totals=staged.totals)

    def _published(self, commit: Commit) -> Commit:
        """The record, or that of another driver with the same input."""
        if publish(self._storage, commit):
            return commit
        raced = resolve(_sequence(self._storage, commit.sequence_id)).whole
        if raced is None or raced.settings != commit.settings:
            raise other_job(self._storage.run_dir)
        return raced


def _sequence(storage: Storage, staged_id: str) -> RecordSequence:
    found = {each.sequence_id: each for each in record_sequences(storage, INPUT)}
    return found.get(staged_id) or RecordSequence(kind=INPUT, sequence_id=staged_id)
