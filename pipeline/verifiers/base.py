"""The interface of a verifier: a program that says of a step whether it is refuted, holds, or neither.

A verdict costs no rollouts and does not depend on a policy, so it must be right. Everything doubtful is unknown. That a part
of a step holds says nothing of the step: on chains with errors that people have marked, steps whose equations all hold are
wrong as often as others. So a verifier says whether it has looked at the whole step. A refuted part does refute its step.

    class Even(Verifier):
        Config = EvenConfig

        def verify(self, step: StepInContext) -> Finding:
            return UNKNOWN
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from pipeline.config.verify import VerifierConfig

MOST_EVIDENCE = 2_000
"""The most characters of an evidence."""


class StepVerdict(StrEnum):
    """What a verifier says of a step."""

    REFUTED = "refuted"
    HOLDS = "holds"
    UNKNOWN = "unknown"


class Covers(StrEnum):
    """What a verdict is about."""

    WHOLE = "whole"
    PART = "part"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInContext:
    """A step and what stands before it. `earlier`: the texts of the steps before it, in their order."""

    problem: str
    earlier: tuple[str, ...]
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The verdict on a step. `evidence`: why, as short plain text; empty only if the verdict is unknown."""

    verdict: StepVerdict
    evidence: str = ""
    covers: Covers = Covers.PART


UNKNOWN = Finding(verdict=StepVerdict.UNKNOWN)


class Fault(StrEnum):
    """Why a verifier has not looked at a step, which is unknown then.

    `deadline`: it took longer than `verifier.deadline_seconds`. `memory`: it needed more than `verifier.memory_mib`. `crashed`:
    its process died of the step, twice, or it failed. `too_long`: the step is longer than `verifier.most_characters`. `lost`:
    no worker survived the chain.
    """

    DEADLINE = "deadline"
    MEMORY = "memory"
    CRASHED = "crashed"
    TOO_LONG = "too_long"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStep:
    """What `check` has of a step: a finding, and why there is none. With a `fault` the finding is unknown."""

    finding: Finding = UNKNOWN
    fault: Fault | None = None


class Verifier(Protocol):
    """A verifier with its settings. An implementation defines `Config` and `verify`.

    `verify` is pure: equal steps get equal findings. It answers in bounded time, because steps are written by models and may
    be hostile, and evaluates nothing of their text as code outside a sandbox."""

    Config: ClassVar[type[VerifierConfig]] = VerifierConfig
    proves: ClassVar[bool] = False
    """Whether its verdicts on whole steps are proofs. A consensus takes proofs as they are, and learns how reliable the
    others are."""
    settings: VerifierConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @classmethod
    def inputs(cls, settings: Any) -> Mapping[str, str]:
        """What findings depend on besides the settings, such as the content of a file, by name. A check is another one where it
        differs. Raises InputError where it cannot be used."""
        return {}

    @classmethod
    def missing(cls, settings: Any) -> str:
        """What it needs and this machine lacks, and how to get it: "needs coqtop: apt-get install coq". Empty if it lacks
        nothing. `check` leaves a verifier that lacks something out, and goes on with the others."""
        return ""

    @classmethod
    def warnings(cls, settings: Any) -> Sequence[str]:
        """What a user should know of these inputs before a check begins."""
        return ()

    @abstractmethod
    def verify(self, step: StepInContext) -> Finding:
        """What it says of a step. UNKNOWN for everything that is doubtful."""
        ...


def wrong_finding(found: Any, _step: object) -> str:
    """What is wrong with a result of `Verifier.verify`, or an empty text."""
    if not isinstance(found, Finding):
        return f"it must return a Finding, but returned {found!r:.200}"
    parts: tuple[Any, ...] = (found.verdict, found.covers, found.evidence)
    if not (isinstance(parts[0], StepVerdict) and isinstance(parts[1], Covers)):
        return f"it must return a StepVerdict and what it covers, but returned {found!r:.200}"
    if not isinstance(parts[2], str) or len(parts[2]) > MOST_EVIDENCE:
        return f"its evidence must be a text of at most {MOST_EVIDENCE} characters, but is {found.evidence!r:.200}"
    if found.verdict is not StepVerdict.UNKNOWN and not found.evidence.strip():
        return f"it says {found.verdict} without any evidence"
    return ""


ANSWERS: Mapping[str, Callable[..., str]] = {"verify": wrong_finding}
"""For each method of `Verifier`, a function that checks what the method returned. It returns an error text, empty if valid."""
