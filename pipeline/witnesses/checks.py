"""The findings of a verifier as a witness: `checks:NAME`, as `check` writes them for the chains of the run.

A refuted step is an error. A step holds only if the verdict covers the whole of it: a part that holds says nothing of its step.
How often a verifier refutes good steps, bad ones and those after an error is learned from the run, as for every witness. Only
the verdicts on whole steps of a verifier that proves count as they are.
"""

from collections.abc import Collection, Mapping
from functools import cached_property

from pipeline.consensus.evidence import StepClaim
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.ids import content_id
from pipeline.core.records import ChainText
from pipeline.core.tables import FINDINGS
from pipeline.storage.location import storage_at
from pipeline.storage.stored_findings import CHECK_RUNS, StoredCheck
from pipeline.verifiers.base import Covers, StepVerdict
from pipeline.witnesses.base import Witness

_HOLDS, _REFUTED = 1, 0
_COLUMNS = ("chain_id", "step_index", "verdict", "covers")


class ChecksWitness(Witness):
    """See the module."""

    def about(self) -> str:
        verdicts, _ = self._found
        said = [verdict for of_chain in verdicts.values() for verdict in of_chain.values()]
        chains = format_count(self._check.tally["chains"], "chain")
        return (
            f"the verifier {self._check.name} checked {chains}: it refutes "
            f"{format_count(said.count(_REFUTED), 'step')}, and {said.count(_HOLDS):,} hold as a whole"
        )

    def digest(self) -> str:
        return content_id("checks", self._check.name, *(shard.sha256 for shard in self._check.shards(FINDINGS)))

    def claim(self, chain: ChainText) -> StepClaim | None:
        verdicts, proved = self._found
        if (of_chain := verdicts.get(chain.chain_id)) is None:
            return None
        return StepClaim(
            steps=tuple(of_chain.get(step) for step in range(1, len(chain.steps) + 1)),
            proved=frozenset(step - 1 for step in proved.get(chain.chain_id, ())),
        )

    @cached_property
    def _check(self) -> StoredCheck:
        name = self.source.source
        if not name:
            raise UsageError(f"consensus.witnesses={self.source.name}: name the verifier, as in checks:arithmetic")
        check = CHECK_RUNS.read(storage_at(self.source.run_dir), name, partial=True)
        if check.unfinished:
            raise UsageError(
                f"{self.source.name} has not checked all chains yet "
                f"({check.owed}): start `check "
                f"run_dir={self.source.run_dir} checks=[{name}]` again with its settings, name other witnesses in "
                f"consensus.witnesses=[...], or move the folder checks/{name} away"
            )
        return check

    @cached_property
    def _found(self) -> tuple[Mapping[str, Mapping[int, int]], Mapping[str, Collection[int]]]:
        """Chain id -> the verdicts on its steps, by step index from 1, and the steps of which the verdict is a proof. Steps
        without a verdict are absent."""
        found: dict[str, dict[int, int]] = {}
        proved: dict[str, set[int]] = {}
        for frame in self._check.frames(FINDINGS, _COLUMNS):
            for chain_id, step, verdict, covers in frame.iter_rows():
                of_chain = found.setdefault(chain_id, {})
                whole = covers == Covers.WHOLE
                if verdict == StepVerdict.REFUTED:
                    of_chain[step] = _REFUTED
                elif verdict == StepVerdict.HOLDS and whole:
                    of_chain[step] = _HOLDS
                if self._check.proves and whole and step in of_chain:
                    proved.setdefault(chain_id, set()).add(step)
        return found, proved
