"""A grader of your own, for answers that are yes or no.

    python -m pipeline.examples.grader

labels two chains with it in the folder `yes_no`. The oracle stands in for a model, so it takes seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pipeline import label
from pipeline.config.fields import RELABEL
from pipeline.config.label import GraderConfig
from pipeline.core.records import Verdict
from pipeline.graders.base import Grader


@dataclass(kw_only=True, slots=True)
class YesNoConfig(GraderConfig):
    kind: Annotated[str, RELABEL] = "yes_no"


class YesNo(Grader):
    Config = YesNoConfig
    settings: YesNoConfig

    def extract(self, texts: Sequence[str], *, complete: bool) -> list[str | None]:
        said = [[word for word in text.lower().replace(".", " ").split() if word in ("yes", "no")] for text in texts]
        return [words[-1] if words else None for words in said]

    def grade(self, golds: Sequence[Sequence[str]], answers: Sequence[str]) -> list[Verdict]:
        return [
            Verdict.CORRECT if answer in accepted else Verdict.INCORRECT
            for accepted, answer in zip(golds, answers, strict=True)
        ]

    def parses(self, golds: Sequence[str]) -> list[bool]:
        return [gold in ("yes", "no") for gold in golds]


ROWS = [
    {"problem": "Is 91 a prime number?", "answer": "no", "steps": ["91 = 7 * 13.", "So it is composite: no"]},
    {"problem": "Is 91 a prime number?", "answer": "no", "steps": ["91 is odd.", "So it is prime: yes"]},
]


def main() -> None:
    """Label, and show what the chains answer."""
    run = label(ROWS, policy="oracle", estimator="fixed", grader=YesNo, run_dir="yes_no")
    print(run.labels().select("final_answer", "outcome", "value"))
    print(run.rollouts()["verdict"].value_counts())


if __name__ == "__main__":
    main()
