"""A verifier of your own, of steps such as `12 is even`.

    python -m pipeline.examples.verifier

labels two chains in the folder `verified`, checks their steps, and prints what was found. The oracle stands in for a policy.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from pipeline import label
from pipeline.config.fields import BY_GROUP
from pipeline.config.verify import VerifierConfig
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier

_CLAIM = re.compile(r"(\d{1,30}) is (even|odd)\.?")


@dataclass(kw_only=True, slots=True)
class EvensConfig(VerifierConfig):
    kind: Annotated[str, BY_GROUP] = "evens"


class Evens(Verifier):
    Config = EvensConfig
    settings: EvensConfig

    def verify(self, step: StepInContext) -> Finding:
        claim = _CLAIM.fullmatch(step.step)
        if claim is None:
            return UNKNOWN
        number, said = claim.groups()
        remainder = int(number) % 2
        holds = (remainder == 0) == (said == "even")
        return Finding(
            verdict=StepVerdict.HOLDS if holds else StepVerdict.REFUTED,
            evidence=f"{number} divided by 2 leaves {remainder}",
            covers=Covers.WHOLE,
        )


ROWS = [
    {"problem": "Is 12 even?", "answer": "yes", "steps": ["12 is even.", "So yes."]},
    {"problem": "Is 12 even?", "answer": "yes", "steps": ["12 is odd.", "So no."]},
]


def main() -> None:
    """Label, check, and show the findings."""
    run = label(ROWS, policy="oracle", estimator="fixed", run_dir="verified")
    print(run.check(Evens))
    print(run.checks("evens").select("step_index", "verdict", "evidence"))


if __name__ == "__main__":
    main()
