"""The checks of a run directory: the runs of `check` in its folder `checks/`, one for each verifier, and their findings.

A verifier that checks again, with other settings, needs a folder without its earlier findings: findings never change.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import polars as pl
import pyarrow as pa

from pipeline.config.verify import VERIFIER_NAME
from pipeline.core.records import Tally
from pipeline.core.tables import FINDINGS
from pipeline.storage.run_record import CHECK, CHECKS, PROVES
from pipeline.storage.stored_run import RunFolder, StoredTask
from pipeline.verifiers.base import Fault, StepVerdict


class StoredCheck(StoredTask):
    """What a verifier found in a run. `tally` is that of `finding_tally`."""

    @property
    def name(self) -> str:
        return str(self.identity["verifier.kind"])

    @property
    def proves(self) -> bool:
        """Whether its verdicts on whole steps are proofs: see `verifiers.base.Verifier.proves`."""
        return bool(self.identity.get(PROVES))


CHECK_RUNS = RunFolder(
    noun="check",
    folder=CHECKS,
    command=CHECK,
    kind=StoredCheck,
    pattern=VERIFIER_NAME,
    misnamed="the verifier {name!r} has a name that no folder can have: it must be 1 to 64 letters, digits, dots, dashes or "
    "underscores, and begin with a letter or digit",
    absent="{run_dir} has no checks by {name}",
    remedy="check it: check run_dir={run_dir} checks=[{name}]",
)


def verdict_frames(
    check: StoredCheck, columns: Sequence[str], chains: Collection[str] | None = None
) -> Iterator[pl.DataFrame]:
    """The findings with a verdict. `columns`: as of `StoredTask.frames`, `verdict` and `chain_id` among them. `chains`: ids of
    those whose steps are wanted; None: all. Raises StoreError for a damaged file."""
    for frame in check.frames(FINDINGS, columns):
        said = frame.filter(pl.col("verdict") != StepVerdict.UNKNOWN.value)
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
