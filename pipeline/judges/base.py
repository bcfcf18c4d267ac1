"""The interfaces of a judge before it is loaded (`Judge`) and of what writes its critiques (`JudgingEngine`).

A judge that writes with a model gets the engine of a policy (`Judge.writes`), so every policy can be one: a model in this
process, a server, a plug-in. What a critique says is a pure function of its text (`Judge.read`): `regrade` reads stored
critiques again.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from pipeline.config.judge import JudgeConfig
from pipeline.config.label import SamplingConfig
from pipeline.core.records import ChainText, Critique, Finish, Reading, ReadingKind
from pipeline.engines.base import ChainEngine, Engine, Surroundings
from pipeline.judges.verdicts import unwritten


class JudgingEngine(ChainEngine, Protocol):
    """Writes critiques."""

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        """The critiques of a chain: `judge.votes` of them. Raises EngineDied when the engine stops working."""
        ...


class Judge(Protocol):
    """A kind of judge with its settings. An implementation defines `engine` and `read`."""

    Config: ClassVar[type[JudgeConfig]] = JudgeConfig
    """Its settings: a subclass of `JudgeConfig` whose `kind` is the judge's name."""
    writes: ClassVar[bool] = True
    """Whether its critiques are written by the policy of the command. If not, `engine` gets None for the engine of a policy."""

    settings: JudgeConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        """What writes the critiques, not started. It starts and closes `text_engine`."""
        ...

    @abstractmethod
    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        """The verdict of a critique of a chain with this number of steps: pure, linear in the length of the text."""
        ...

    def sampling(self) -> SamplingConfig:
        """How a policy samples its critiques."""
        return SamplingConfig()

    def identity(self) -> Mapping[str, object]:
        """What determines its critiques and is not among its settings, by dotted key: such as a hash of a template's file."""
        return {}


def wrong_critiques(found: Sequence[Critique], chain: ChainText, votes: int) -> str:
    """What is wrong with the answer of `JudgingEngine.critiques`, or an empty text."""
    if len(found) != votes:
        return f"it wrote {len(found)} critiques of chain {chain.chain_id} instead of {votes}"
    return next((wrong for each in found if (wrong := wrong_reading(each.reading, len(chain.steps)))), "")


def wrong_reading(found: Reading, steps: int) -> str:
    """What is wrong with the reading of a critique of a chain with this number of steps, or an empty text."""
    if (found.first_error is not None) != (found.kind is ReadingKind.ERROR):
        return f"a reading of the kind {found.kind.value} has the first error {found.first_error}"
    if found.first_error is not None and not 1 <= found.first_error <= steps:
        return f"it names step {found.first_error} of a chain of {steps} steps"
    if found.steps and len(found.steps) != steps:
        return f"it has opinions on {len(found.steps)} of {steps} steps"
    return ""


ANSWERS: Mapping[str, Callable[..., str]] = {
    "critiques": lambda found, chain: wrong_critiques(found, chain, len(found)),
    "read": lambda found, turns, finish, steps: wrong_reading(found, steps),
}
"""See `core.registry.Registry`. Who asks for critiques knows how many there must be, and checks that with `wrong_critiques`."""


def read_critique(judge: Judge, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
    """The reading of a critique of a chain with this number of steps, from its turns as they are stored."""
    missing = None if finish in (Finish.STOP, Finish.LENGTH) else unwritten(turns, finish)
    return missing or judge.read(turns, finish, steps)
