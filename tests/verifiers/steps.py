"""Steps as verifiers get them, and what verifiers say of them."""

from pipeline.verifiers.base import Finding, StepInContext, Verifier
from pipeline.verifiers.registry import verifier_named


def verifier(name: str) -> Verifier:
    return verifier_named(name)


def finding(name: str, step: str, *, problem: str = "", earlier: tuple[str, ...] = ()) -> Finding:
    """What the verifier of this name says of a step."""
    return verifier(name).verify(StepInContext(problem=problem, earlier=earlier, step=step))


def verdict(name: str, step: str, *, problem: str = "", earlier: tuple[str, ...] = ()) -> str:
    return finding(name, step, problem=problem, earlier=earlier).verdict.value
