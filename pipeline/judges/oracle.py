"""A judge whose confusion is known, for tests and dry runs. It is never chosen implicitly.

The first error of a chain is the first step whose true value under the oracle policy (`engines.oracle.true_value`, with the
same seed and spread) is not above `judge.oracle.threshold`. Votes err as `confusion` says. A critique is a pure function of
(seed, chain_id, number of the vote), in every process and in any order; its text is read as a model's is.
"""

import asyncio
from collections.abc import Sequence

from pipeline.core.errors import EngineDied
from pipeline.core.records import ChainText, Critique, Finish, Reading
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.oracle import value_of
from pipeline.engines.oracle_tree import uniform
from pipeline.judges.base import Judge, JudgingEngine
from pipeline.judges.confusion import Confusion, correlated_votes
from pipeline.judges.settings import OracleJudgeConfig, OracleVotes
from pipeline.judges.verdicts import NONE, boxed_index, index_reading, unwritten

_CAPACITY = 1024
_BASE = 0
"""The number of the first step in its critiques."""


class OracleCritiques:
    """See the module. `attempt` counts from 1. Faults after a number of chains occur only on the first attempt, so a retry
    succeeds. The fault of a certain chain occurs on every attempt."""

    capacity = _CAPACITY

    def __init__(self, judge: "OracleJudge", *, attempt: int) -> None:
        self._judge = judge
        self._votes = judge.settings.votes
        self._settings = own = judge.settings.oracle
        self._faults = attempt == 1
        self._judged = 0
        self._turn = asyncio.Lock()
        self.model = (
            f"oracle:seed={own.seed},spread={own.spread:g},threshold={own.threshold:g},exact={own.exact:g},early={own.early:g},"
            f"late={own.late:g},false_alarm={own.false_alarm:g},correlation={own.correlation:g},unparseable={own.unparseable:g}"
        )

    async def start(self) -> None:
        return

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        own = self._settings
        if self._faults and own.fail_after and self._judged >= own.fail_after:
            raise EngineDied("the oracle judge died because of judge.oracle.fail_after")
        if own.poison and chain.chain_id.startswith(own.poison):
            raise EngineDied("the oracle judge died because of judge.oracle.poison")
        if self._faults and own.hang_after and self._judged >= own.hang_after:
            await asyncio.Event().wait()
        self._judged += 1
        texts = vote_texts(own, chain, self._votes)
        read = len(chain.problem) + sum(map(len, chain.steps))
        found = [
            Critique(
                turns=(text,),
                finish=Finish.STOP,
                reading=self._judge.read((text,), Finish.STOP, len(chain.steps)),
                n_tokens=len(text),
                n_prompt_tokens=read,
            )
            for text in texts
        ]
        if own.tokens_per_second:
            # One device writes all critiques, one after the other.
            async with self._turn:
                await asyncio.sleep(sum(each.n_tokens for each in found) / own.tokens_per_second)
        return found

    async def close(self) -> None:
        return


class OracleJudge(Judge):
    """The oracle as a judge (`judge=oracle`)."""

    Config = OracleJudgeConfig
    writes = False
    settings: OracleJudgeConfig

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        return OracleCritiques(self, attempt=around.attempt)

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        missing = unwritten(turns, finish)
        return missing or index_reading(boxed_index(turns[-1]), finish, steps, _BASE)


def first_error(own: OracleVotes, chain: ChainText) -> int | None:
    """The number of the first step with an error, from 1. None without one."""
    values = (value_of(own.seed, own.spread, chain.problem_id, prefix_id) for prefix_id in chain.prefix_ids)
    return next((number for number, value in enumerate(values, start=1) if value <= own.threshold), None)


def vote_texts(own: OracleVotes, chain: ChainText, votes: int) -> list[str]:
    """The texts of a chain's critiques."""
    confusion = Confusion(exact=own.exact, early=own.early, late=own.late, false_alarm=own.false_alarm)
    steps = len(chain.steps)
    probabilities = confusion.probabilities(steps, first_error(own, chain))
    key = f"{own.seed}:judge:{chain.chain_id}"
    uniforms = [(uniform(f"{key}:{vote}:urn"), uniform(f"{key}:{vote}:draw")) for vote in range(votes)]
    found = correlated_votes(probabilities, own.correlation, uniforms)
    return [
        _WORDLESS if uniform(f"{key}:{vote}:words") < own.unparseable else _text(position, steps)
        for vote, position in enumerate(found)
    ]


_WORDLESS = "I have read the solution. It is hard to say."


def _text(position: int, steps: int) -> str:
    """A critique that names this position (see `confusion`)."""
    if position == steps:
        return f"I find no error in any paragraph.\n\\boxed{{{NONE}}}"
    return f"The paragraphs before are right. Paragraph {position + _BASE} has an error.\n\\boxed{{{position + _BASE}}}"
