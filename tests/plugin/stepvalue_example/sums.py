"""A witness that does the sums which a step writes out, such as `2 + 2 = 5`: wrong ones refute the step.

A right sum says nothing of the rest of its step, so it is no claim that the step holds.
"""

import re

from pipeline.consensus.evidence import StepClaim
from pipeline.core.records import ChainText
from pipeline.witnesses.base import Witness

_SUM = re.compile(r"(?<![\d.])(\d{1,9}) ?\+ ?(\d{1,9}) ?= ?(\d{1,10})(?![\d.])")


class Sums(Witness):
    def about(self) -> str:
        return "sums that are done again"

    def digest(self) -> str:
        return "1"

    def claim(self, chain: ChainText) -> StepClaim | None:
        refuted = [any(int(a) + int(b) != int(c) for a, b, c in _SUM.findall(step)) for step in chain.steps]
        return StepClaim(steps=tuple(0 if each else None for each in refuted)) if any(refuted) else None
