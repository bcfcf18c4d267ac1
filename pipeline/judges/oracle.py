"""A judge whose confusion is known, for tests and dry runs. It is never chosen implicitly.

The first error of a chain is the first step whose true value under the oracle policy (`engines.oracle.true_value`, with the
same seed) is not above a half. Votes err as `Confusion` says. A critique is a pure function of (seed, chain_id, number of the
vote), in every process and in any order; its text is read as a model's is.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pipeline.core.records import ChainText, Critique, Finish, Reading
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.oracle import value_of
from pipeline.engines.oracle_tree import USUAL, uniform
from pipeline.judges.base import Judge, JudgingEngine
from pipeline.judges.settings import OracleJudgeConfig
from pipeline.judges.verdicts import NONE, boxed_index, index_reading, unwritten

_CAPACITY = 1024
_BASE = 0
"""The number of the first step in its critiques."""
_WRONG = 0.5
"""A step whose true value is not above this is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How one vote errs. All are probabilities.

    `exact`, `early`, `late`: of a chain with an error, that the vote names its step, one before, one after; the rest says that
    there is none. Positions before are equally likely, and so are those after. `false_alarm`: of a chain without an error, that
    the vote names a step, each equally likely.
    """

    exact: float = 0.8
    early: float = 0.05
    late: float = 0.1
    false_alarm: float = 0.1

    def probabilities(self, steps: int, first_error: int | None) -> tuple[float, ...]:
        """The probability of each answer to a chain of `steps` steps: that its first error is the first step, the second, ...,
        and that there is none. `first_error`: the true one, from 1; None without an error.

        The first step has none before, the last one none after: the probability of what cannot be goes to the others in their
        proportion, and to the exact step where these have none. A chain without steps has no error.
        """
        if first_error is None or not steps:
            alarm = self.false_alarm if steps else 0.0
            return (*(alarm / steps for _ in range(steps)), 1.0 - alarm)
        before, after = first_error - 1, steps - first_error
        early, late = self.early if before else 0.0, self.late if after else 0.0
        none = max(0.0, 1.0 - self.exact - self.early - self.late)
        total = self.exact + early + late + none
        if total <= 0.0:
            return tuple(float(position == before) for position in range(steps + 1))
        return (
            *(early / total / before for _ in range(before)),
            self.exact / total,
            *(late / total / after for _ in range(after)),
            none / total,
        )


class OracleCritiques:
    """See the module."""

    capacity = _CAPACITY

    def __init__(self, judge: "OracleJudge", confusion: Confusion = Confusion()) -> None:
        self._judge = judge
        self._seed = judge.settings.oracle.seed
        self._confusion = confusion
        self.model = f"oracle:seed={self._seed}"

    async def start(self) -> None:
        return

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        texts = vote_texts(self._seed, self._confusion, chain, self._judge.settings.votes)
        read = len(chain.problem) + sum(map(len, chain.steps))
        return [
            Critique(
                turns=(text,),
                finish=Finish.STOP,
                reading=self._judge.read((text,), Finish.STOP, len(chain.steps)),
                n_tokens=len(text),
                n_prompt_tokens=read,
            )
            for text in texts
        ]

    async def close(self) -> None:
        return


class OracleJudge(Judge):
    """The oracle as a judge (`judge=oracle`)."""

    Config = OracleJudgeConfig
    writes = False
    settings: OracleJudgeConfig

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        return OracleCritiques(self)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        missing = unwritten(turns, finish)
        return missing or index_reading(boxed_index(turns[-1]), finish, steps, _BASE)


def first_error(seed: int, chain: ChainText) -> int | None:
    """The number of the first step with an error, from 1. None without one."""
    values = (value_of(seed, USUAL.spread, chain.problem_id, prefix_id) for prefix_id in chain.prefix_ids)
    return next((number for number, value in enumerate(values, start=1) if value <= _WRONG), None)


def vote_texts(seed: int, confusion: Confusion, chain: ChainText, votes: int) -> list[str]:
    """The texts of a chain's critiques. More votes leave the first ones as they are."""
    steps = len(chain.steps)
    total = list(accumulate(confusion.probabilities(steps, first_error(seed, chain))))
    key = f"{seed}:judge:{chain.chain_id}"
    return [_text(_position(total, uniform(f"{key}:{vote}:draw")), steps) for vote in range(votes)]


def _position(total: Sequence[float], draw: float) -> int:
    """The position that a number from [0, 1) falls onto. `total`: the probabilities added up."""
    found = bisect_right(total, draw * total[-1])
    # A draw at the very end of rounding takes the last position that is possible.
    while found >= len(total) or (found > 0 and total[found] == total[found - 1]):
        found -= 1
    return found


def _text(position: int, steps: int) -> str:
    """A critique that says that the step with this index is the first error, or with the index `steps`, that there is none."""
    if position == steps:
        return f"I find no error in any paragraph.\n\\boxed{{{NONE}}}"
    return f"The paragraphs before are right. Paragraph {position + _BASE} has an error.\n\\boxed{{{position + _BASE}}}"
