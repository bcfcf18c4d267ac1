"""A verifier that refutes steps by a sign of theirs."""

from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier


class Suspicious(Verifier):
    """See the module."""

    def verify(self, step: StepInContext) -> Finding:
        return Finding(verdict=StepVerdict.REFUTED, evidence="bad") if is_bad(step.step) else UNKNOWN


def is_bad(step: str) -> bool:
    return "branch d" in step
