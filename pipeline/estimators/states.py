"""A `Learner` whose state is stored as JSON, for estimators that learn only a few numbers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pipeline.core.records import Trials
from pipeline.core.schemas import SCHEMAS
from pipeline.estimators.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonState:
    """Any JSON values, learned from `chains` chains."""

    values: Mapping[str, Any] = field(default_factory=dict)
    chains: int = 0


class JsonLearner:
    """A `base.Learner` whose subclass adds `learn`. `name`: the estimator's name. `version`: the version of its state."""

    table = "states"

    def __init__(self, name: str, version: int, **initial: Any) -> None:
        self.name = name
        self.version = version
        self._initial = JsonState(values=initial)

    def initial(self) -> JsonState:
        return self._initial

    def learn(self, known: JsonState, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> JsonState:
        raise NotImplementedError

    def familiar(self, known: JsonState) -> JsonState:
        return replace(known)

    def to_table(self, known: JsonState) -> pa.Table:
        row = {"estimator": self.name, "version": self.version, "chains": known.chains}
        return pa.Table.from_pylist([row | {"state": json.dumps(dict(known.values))}], schema=SCHEMAS[self.table])

    def from_table(self, table: pa.Table) -> JsonState:
        """Raises ValueError for the state of another estimator or version."""
        row = table.to_pylist()[0]
        if (row["estimator"], row["version"]) != (self.name, self.version):
            raise ValueError(f"the state was learned by {row['estimator']}, version {row['version']}")
        return JsonState(values=json.loads(row["state"]), chains=row["chains"])
