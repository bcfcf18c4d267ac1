"""A judge without a model: the first step without a numeral is the first error, and every vote says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.judge import JudgeConfig
from pipeline.core.records import ChainText, Critique, Finish, Reading, ReadingKind
from pipeline.engines.base import Engine, Surroundings
from pipeline.judges.base import Judge, JudgingEngine


@dataclass(kw_only=True, slots=True)
class NumeralsConfig(JudgeConfig):
    kind: Annotated[str, BY_GROUP] = "numerals"
    beyond: int = 0
    """Added to the step that a critique names. Above the length of a chain it is no verdict, which the tests want to see
    refused."""


class Numerals(Judge):
    Config = NumeralsConfig
    writes = False
    settings: NumeralsConfig

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        return Critic(self)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        said = turns[-1].rpartition(" ")[2] if turns else ""
        if said == "none":
            return Reading(kind=ReadingKind.NO_ERROR)
        if not said.isdecimal():
            return Reading(kind=ReadingKind.UNPARSEABLE)
        return Reading(kind=ReadingKind.ERROR, first_error=int(said) + self.settings.beyond)


class Critic:
    """Judges chains at once."""

    capacity = 64
    model = "numerals"

    def __init__(self, judge: Numerals) -> None:
        self._judge = judge

    async def start(self) -> None:
        return

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        without = [number for number, step in enumerate(chain.steps, start=1) if not any(map(str.isdecimal, step))]
        text = f"The first step without a numeral is {without[0] if without else 'none'}"
        reading = self._judge.read((text,), Finish.STOP, len(chain.steps))
        critique = Critique(turns=(text,), finish=Finish.STOP, reading=reading, n_tokens=len(text.split()))
        return [critique] * self._judge.settings.votes

    async def close(self) -> None:
        return
