"""Settings of the verifiers. This module loads no library."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import Sandbox
from pipeline.config.fields import BY_GROUP, FREE, SAMPLE, TABLE, check
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
class Z3Config(VerifierConfig):
    """Steps in SMT-LIB 2 or in FoVer's first-order layout."""

    kind: Annotated[str, BY_GROUP] = "z3"
    deadline_seconds: Annotated[float, Range(gt=0, le=3600)] = 20.0
    memory_mib: Annotated[int, Ge(256)] = 2048
    resource_limit: Annotated[int, Range(ge=1_000, le=4_000_000_000)] = 2_000_000
    """Most operations for a question, as Z3 counts them (`rlimit`). They do not depend on the machine."""
    time_limit_ms: Annotated[int, Range(ge=10, le=600_000)] = 10_000
    """Milliseconds for a question, well above what `resource_limit` takes. A step asks up to four for each claim."""
    memory_mb: Annotated[int, Range(ge=50, le=1_000_000)] = 1_000
    """Megabytes for a question."""
    ignore_words: bool = False
    """Words before a step say nothing that the SMT-LIB blocks there do not say. false: a step that does not follow from
    the blocks is unknown where there are such words."""


@dataclass(kw_only=True, slots=True)
class CoqConfig(VerifierConfig):
    """Steps in Coq, which reads a chain as one proof script."""

    kind: Annotated[str, BY_GROUP] = "coq"
    deadline_seconds: Annotated[float, Range(gt=0, le=3600)] = 60.0
    memory_mib: Annotated[int, Ge(256)] = 2048
    sentence_seconds: Annotated[float, Range(gt=0, le=3600)] = 5.0
    """Seconds for a sentence. A step with a longer one is unknown, and those after it."""
    ignore_words: bool = False
    """Words around a step's sentences, and before it, say nothing that it needs. false: where there are such words, a step that
    Coq rejects is unknown."""


@dataclass(kw_only=True, slots=True)
class ProofServerConfig(VerifierConfig):
    """Steps in Lean 4, checked by a server."""

    kind: Annotated[str, BY_GROUP] = "proof_server"
    deadline_seconds: Annotated[float, Range(gt=0, le=3600)] = 600.0
    url: Annotated[str, FREE] = ""
    """The server, such as http://localhost:8000: a Kimina Lean Server, which checks texts at /api/check. Its version of Lean is
    part of what a check is; its libraries are not."""
    text_seconds: Annotated[int, Range(ge=1, le=600)] = 30
    """Seconds in which the server checks a text; a step takes up to three."""
    header: str = ""
    """Goes before a problem that imports nothing, such as "import Mathlib"."""
    ignore_words: bool = False
    """Words around a step's Lean, and before it, say nothing that it needs. false: where there are such words, a step that Lean
    rejects is unknown."""

    def check(self) -> None:
        parts = urlsplit(self.url)
        right = not self.url or (parts.scheme in ("http", "https") and parts.hostname is not None and not parts.query)
        check(right and "@" not in self.url, "verifier.url", repr(self.url), "a URL such as http://localhost:8000")


@dataclass(kw_only=True, slots=True)
class FactsConfig(VerifierConfig):
    """Claims of facts, looked up in a table."""

    kind: Annotated[str, BY_GROUP] = "facts"
    table: Annotated[str, FREE, TABLE] = SAMPLE
    """The table of facts: a .parquet, .sqlite, .db, .csv or .jsonl file with the columns entity, attribute and value, on each
    machine. `sample`: the shipped table of 100 facts. Its content is part of what a check is."""
    refute_new_names: bool = False
    """true: a claim is refuted by each proper name that is not the right one. false: only by a name that the table has as the
    value of the same attribute of another entity; another one may be a spelling that the table lacks."""

    def check(self) -> None:
        check(bool(self.table.strip()), "verifier.table", repr(self.table), "the path of a table, or sample")


@dataclass(kw_only=True, slots=True)
class CodeConfig(VerifierConfig):
    """Steps that are Python, run in a sandbox."""

    kind: Annotated[str, BY_GROUP] = "code"
    deadline_seconds: Annotated[float, Range(gt=0, le=3600)] = 60.0
    least_tests: Annotated[int, Range(ge=1, le=1000)] = 3
    """Fewest tests of the problem with a value that is written out, not all the same, for `holds` to cover the whole step."""
    cpu_seconds: Annotated[float, Range(gt=0, le=600)] = 2.0
    """Processor time for a run of the program, in seconds. With more the step is unknown."""
    wall_seconds: Annotated[float, Range(gt=0, le=600)] = 10.0
    """Wall time for a run of the program, in seconds. With more the step is unknown. A step needs up to two runs, and one more
    for each earlier step that the tests of the problem judge."""
    program_memory_mib: Annotated[int, Range(ge=64, le=1_000_000)] = 512
    """Memory of the program, in MiB. If it needs more, the step is unknown."""
    sandbox: Annotated[Sandbox, FREE] = Sandbox.standard
    """The protection that the machine must provide, as for `grader.sandbox`. If it cannot, no program is run."""
