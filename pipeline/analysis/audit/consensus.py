"""Proves labels by consensus: that they follow from the rollouts, from what the witnesses say, and from what was learned of
all."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.analysis.audit.invariants import alike
from pipeline.analysis.consensus import Consensus, learned_from
from pipeline.config.choices import ConsensusHow
from pipeline.config.consensus import ABOUT, DIGEST, RECALIBRATE, witness_names
from pipeline.config.recorded_settings import Settings
from pipeline.consensus.evidence import ChainEvidence
from pipeline.core.errors import InputError, StoreError, UsageError
from pipeline.core.records import Chain, Trials
from pipeline.estimators.base import Estimator
from pipeline.storage.run_record import recorded_identity
from pipeline.storage.storage import Storage
from pipeline.witnesses import registry

_LEARNED_DIGITS = 1e-6
"""By how much learned numbers may differ between processors: learning ends when they change by less."""


class ConsensusProof:
    """Computes the labels of units again, and notes on what. `estimator`: computes the values."""

    def __init__(self, storage: Storage, settings: Settings, learned: pa.Table | None) -> None:
        """`settings`: those of the edition. `learned`: its table of reliabilities. Raises ValueError, TypeError and UsageError
        for invalid settings."""
        witnesses = registry.witnesses_of(storage.run_dir, witness_names(settings))
        self._consensus = Consensus(settings, witnesses, recorded_identity(storage))
        self.estimator: Estimator = self._consensus.values
        self._learned = None if learned is None else learned_from(learned)
        self._evidence: list[ChainEvidence] = []
        self._missing = list(self._missing_parts(settings))

    def labels(self, chains: Sequence[Chain], trials: Mapping[str, Trials], state: Any) -> pa.Table | None:
        """The labels of a unit. None where they cannot be computed, see `faults`."""
        if self._missing:
            return None
        by_mc, evidence = self._consensus.measure(chains, trials, state)
        self._evidence += evidence
        return self._consensus.labels(by_mc, evidence, self._consensus.places(evidence, self._learned), self._learned)

    def faults(self) -> Iterator[str]:
        """What is wrong with the consensus as a whole, after all units."""
        yield from self._missing
        if self._missing or self._learned is None:
            return
        again = self._consensus.learn(self._evidence)
        if again is None or not alike(
            again.as_dict(), self._learned.as_dict(), abs_tol=_LEARNED_DIGITS, rel_tol=_LEARNED_DIGITS
        ):
            yield f"what it learned of its witnesses does not follow from the log, or from {RECALIBRATE}"

    def _missing_parts(self, settings: Settings) -> Iterator[str]:
        if self._consensus.how is ConsensusHow.posterior and self._learned is None:
            yield "it names no file with what it learned of its witnesses"
        for witness in self._consensus.witnesses:
            name = witness.source.name
            try:
                said = registry.digest(witness)
            except (InputError, UsageError, StoreError) as error:
                yield f"its witness {name} cannot be read: {error}"
            else:
                if said != settings.get(f"{DIGEST}{name}"):
                    was = settings.get(f"{ABOUT}{name}")
                    yield f"its witness {name} ({was}) says other things now than when the labels were made"
