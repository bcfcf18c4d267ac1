"""Steps as verifiers get them, and what verifiers say of them."""

from pipeline.verifiers.base import Finding, StepInContext, Verifier
from pipeline.verifiers.registry import VERIFIERS, missing_for, verifier_named

ASKED = tuple(name for name in VERIFIERS.ours if not missing_for(VERIFIERS.settings(name)(kind=name)))
"""The verifiers that lack nothing on this machine."""


def verifier(name: str) -> Verifier:
    return verifier_named(name)


def finding(name: str, step: str, *, problem: str = "", earlier: tuple[str, ...] = ()) -> Finding:
    """What the verifier of this name says of a step."""
    return verifier(name).verify(StepInContext(problem=problem, earlier=earlier, step=step))


def verdict(name: str, step: str, *, problem: str = "", earlier: tuple[str, ...] = ()) -> str:
    return finding(name, step, problem=problem, earlier=earlier).verdict.value
