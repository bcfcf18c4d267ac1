"""A judge of your own, without a model: the first step without a numeral is the first error.

    python -m pipeline.examples.judge

labels two chains in the folder `judged`, has them judged, and prints which step the judge names. The oracle stands in for a
policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pipeline import label
from pipeline.config.fields import BY_GROUP
from pipeline.config.judge import JudgeConfig
from pipeline.core.records import ChainText, Critique, Finish, Reading, ReadingKind
from pipeline.engines.base import Engine, Surroundings
from pipeline.judges.base import Judge, JudgingEngine


@dataclass(kw_only=True, slots=True)
class NumeralsConfig(JudgeConfig):
    kind: Annotated[str, BY_GROUP] = "numerals"
    numerals: str = "0123456789"


class Critic:
    capacity = 64
    model = "numerals"

    def __init__(self, judge: "Numerals") -> None:
        self._judge = judge

    async def start(self) -> None:
        return

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        own = self._judge.settings
        text = next((str(at) for at, step in enumerate(chain.steps, 1) if not set(step) & set(own.numerals)), "none")
        reading = self._judge.read((text,), Finish.STOP, len(chain.steps))
        return [Critique(turns=(text,), finish=Finish.STOP, reading=reading, n_tokens=1)] * own.votes

    async def close(self) -> None:
        return


class Numerals(Judge):
    Config = NumeralsConfig
    writes = False
    settings: NumeralsConfig

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        return Critic(self)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        if turns == ("none",):
            return Reading(kind=ReadingKind.NO_ERROR)
        return Reading(kind=ReadingKind.ERROR, first_error=int(turns[-1]))


ROWS = [
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."]},
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 6.", "That is a lot.", "The answer is 10."]},
]


def main() -> None:
    """Label, have the chains judged twice, and show the critiques."""
    run = label(ROWS, policy="oracle", estimator="fixed", run_dir="judged")
    print(run.judge("mine", judge=Numerals(NumeralsConfig(votes=2))))
    print(run.critiques("mine").select("chain_id", "first_error"))


if __name__ == "__main__":
    main()
