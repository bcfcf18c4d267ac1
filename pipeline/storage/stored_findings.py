"""The checks of a run directory: the runs of `check` in its folder `checks/`, one for each verifier, and their findings.

A verifier that checks again, with other settings, needs a folder without its earlier findings: findings never change.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from pipeline.config.verify import VERIFIER_NAME
from pipeline.core.errors import UsageError
from pipeline.core.records import Tally
from pipeline.core.suggestions import choice_hint
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import CHECK, CHECKS, PROVES
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_chain_run import StoredChainRun, stored_chain_run
from pipeline.verifiers.base import Fault, StepVerdict

FOLDER = CHECKS
TABLE = "findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheck:
    """What a verifier found in a run. `storage`: its own run directory."""

    name: str
    storage: Storage
    run: StoredChainRun

    @property
    def proves(self) -> bool:
        """Whether its verdicts on whole steps are proofs: see `verifiers.base.Verifier.proves`."""
        return bool(self.run.identity.get(PROVES))

    @property
    def tally(self) -> Tally:
        """The counts of all finished units, as `finding_tally` makes them."""
        return self.run.tally

    @property
    def shards(self) -> tuple[ShardRecord, ...]:
        """The files of findings of all finished units, in the order of the chains."""
        return tuple(self.run.shards(TABLE))


def check_storage(storage: Storage, name: str) -> Storage:
    """The run directory of the check of the run directory `storage` by the verifier of this name. Raises UsageError for a name
    that is none of a folder."""
    if VERIFIER_NAME.fullmatch(name) is None:
        raise UsageError(
            f"the verifier {name!r} has a name that no folder can have: it must be 1 to 64 letters, digits, dots, dashes or "
            "underscores, and begin with a letter or digit"
        )
    return storage_at(f"{storage.run_dir}/{FOLDER}/{name}")


def check_names(storage: Storage) -> list[str]:
    """The names of the verifiers that have checked a run directory, sorted. Raises StoreError for a directory that cannot be
    read."""
    return [name for name in storage_at(f"{storage.run_dir}/{FOLDER}").names("") if VERIFIER_NAME.fullmatch(name)]


def stored_check(storage: Storage, name: str, *, partial: bool = False) -> StoredCheck:
    """The check of the run directory `storage` by the verifier of this name. One that has not checked all of its chains yet is
    accepted only with `partial`.

    Raises UsageError for a run that this verifier has not checked, and for an unfinished check; StoreError for a damaged one.
    """
    own = check_storage(storage, name)
    if not own.names(""):
        names = check_names(storage)
        others = choice_hint(name, names) if names else f"check it: check run_dir={storage.run_dir} checks=[{name}]"
        raise UsageError(f"{storage.run_dir} has no checks by {name}: {others}")
    run = stored_chain_run(own, CHECK, partial=partial)
    return StoredCheck(name=str(run.identity["verifier.kind"]), storage=own, run=run)


def finding_frames(check: StoredCheck, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """The findings of each finished unit: one row per step, sorted by chain and step. `columns`: those of the table `findings`
    that are wanted; None: all. Raises StoreError for a damaged file."""
    wanted = None if columns is None else list(columns)
    for unit in check.run.units:
        whole = check.run.wholes.get(unit.unit_id)
        tables = [
            read_shard(check.storage, each, wanted) for each in (whole.shards if whole else ()) if each.table == TABLE
        ]
        if tables:
            yield pl.DataFrame(pa.concat_tables(tables).unify_dictionaries())


def verdict_frames(
    check: StoredCheck, columns: Sequence[str], chains: Collection[str] | None = None
) -> Iterator[pl.DataFrame]:
    """The findings with a verdict, with verdicts and what they cover as texts. `columns`: those that are wanted, `verdict` and
    `chain_id` among them. `chains`: ids of those whose steps are wanted; None: all. Raises as `finding_frames` does."""
    texts = pl.col({"verdict", "covers"}.intersection(columns)).cast(pl.String)
    for frame in finding_frames(check, columns):
        said = frame.with_columns(texts).filter(pl.col("verdict") != StepVerdict.UNKNOWN.value)
        yield said if chains is None else said.filter(pl.col("chain_id").is_in(chains))


def finding_tally(findings: pa.Table) -> Tally:
    """The counts of findings, those of whole chains: checked `chains` and their `steps`, of which some are `refuted`, `holds`,
    or `unknown` to a verifier that looked at them; the others by `Fault`, `engine_failed` for those that are lost."""
    verdicts = Counter(findings["verdict"].to_pylist())
    faults = Counter(findings["fault"].to_pylist())
    return Tally(
        {fault.value: faults[fault] for fault in Fault if fault is not Fault.LOST},
        chains=len(set(findings["row"].to_pylist())),
        steps=findings.num_rows,
        refuted=verdicts[StepVerdict.REFUTED],
        holds=verdicts[StepVerdict.HOLDS],
        unknown=verdicts[StepVerdict.UNKNOWN] - sum(faults[each] for each in Fault),
        engine_failed=faults[Fault.LOST],
    )
