"""Settings of the verifiers. This module loads no library."""

from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP, FREE, check
from pipeline.config.verify import VerifierConfig


@dataclass(kw_only=True, slots=True)
class ArithmeticConfig(VerifierConfig):
    """Equations of plain numbers."""

    kind: Annotated[str, BY_GROUP] = "arithmetic"


@dataclass(kw_only=True, slots=True)
class AlgebraConfig(VerifierConfig):
    """Identities and solved equations."""

    kind: Annotated[str, BY_GROUP] = "algebra"


@dataclass(kw_only=True, slots=True)
class FactsConfig(VerifierConfig):
    """Claims of facts, looked up in a table."""

    kind: Annotated[str, BY_GROUP] = "facts"
    table: Annotated[str, FREE] = "sample"
    """The table of facts: a .parquet, .sqlite, .db, .csv or .jsonl file with the columns entity, attribute and value, on each
    machine. `sample`: the shipped table of 100 facts. Its content is part of what a check is."""
    refute_new_names: bool = False
    """true: a claim is refuted by each proper name that is not the right one. false: only by a name that the table has as the
    value of the same attribute of another entity; another one may be a spelling that the table lacks."""

    def check(self) -> None:
        check(bool(self.table.strip()), "verifier.table", repr(self.table), "the path of a table, or sample")
