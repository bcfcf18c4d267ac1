"""A witness of your own: it does the sums which a step writes out, such as `2 + 2 = 5`, and wrong ones refute the step.

    python -m pipeline.examples.witness

labels two chains in the folder `witnessed`, and prints what the witness says of each. A right sum says nothing of the rest of
its step, so it is no claim that the step holds. `relabel` asks witnesses that are installed, as plug-ins.
"""

import re

from pipeline import label
from pipeline.consensus.evidence import StepClaim
from pipeline.core.records import ChainText
from pipeline.witnesses.base import Witness, WitnessSource

_SUM = re.compile(r"(?<![\d.])(\d{1,9}) ?\+ ?(\d{1,9}) ?= ?(\d{1,10})(?![\d.])")


class Sums(Witness):
    def about(self) -> str:
        return "sums that are done again"

    def digest(self) -> str:
        return "1"

    def claim(self, chain: ChainText) -> StepClaim | None:
        refuted = [any(int(a) + int(b) != int(c) for a, b, c in _SUM.findall(step)) for step in chain.steps]
        return StepClaim(steps=tuple(0 if each else None for each in refuted)) if any(refuted) else None


ROWS = [
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."]},
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 6.", "6 + 4 = 10.", "The answer is 10."]},
]


def main() -> None:
    """Label, and ask the witness."""
    run = label(ROWS, policy="oracle", estimator="fixed", run_dir="witnessed")
    witness = Sums(WitnessSource(run_dir=run.run_dir, kind="sums", source=""))
    for row in run.labels().iter_rows(named=True):
        asked = ("chain_id", "problem_id", "problem", "steps", "prefix_ids")
        print(witness.claim(ChainText(**{name: row[name] for name in asked})))


if __name__ == "__main__":
    main()
