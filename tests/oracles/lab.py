"""The oracles with what only tests turn: faults, speeds, other worlds, miscalibrated scores, other judges.

A policy, a scorer or a judge of the lab is the oracle, whose own settings it has, with a wrapper around its engine. Settings of
the wrapper are `policy.lab`, `scorer.lab` and `judge.lab`.
"""

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, cast

from annotated_types import Ge

from pipeline.config.fields import BY_GROUP, FREE, Settings
from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied
from pipeline.core.records import ChainText, Completion, Critique, Finish, Request
from pipeline.engines import oracle
from pipeline.engines.base import Engine, Surroundings, empty_completion
from pipeline.engines.oracle_tree import Shape, uniform
from pipeline.graders.base import Ending
from pipeline.judges.base import JudgingEngine
from pipeline.judges.oracle import Confusion, OracleCritiques, OracleJudge
from pipeline.judges.settings import OracleJudgeConfig
from pipeline.scorers import oracle as scores_of_oracle
from pipeline.scorers.base import UNREADABLE, ScoringEngine, StepScores
from pipeline.scorers.readouts import sigmoid
from pipeline.scorers.settings import OracleScorerConfig

WORDLESS = "I have read the solution. It is hard to say."


@dataclass(kw_only=True, slots=True)
class Faults(Settings):
    """How an engine fails. What follows a number of answers strikes on the first attempt alone, so that a retry succeeds."""

    fail_after: Annotated[int, FREE] = 0
    """The engine dies after this number of answers. 0: never."""
    hang_after: Annotated[int, FREE] = 0
    """The engine stops answering after this number of answers. 0: never."""
    poison: Annotated[str, FREE] = ""
    """What is asked under an id that starts with this text kills the engine on every attempt. Empty: nothing does."""


@dataclass(kw_only=True, slots=True)
class World(Faults):
    """Another world, see `Shape`."""

    spread: float = 0.35
    depth: int = 6
    branching: int = 3
    early: float = 0.0

    @property
    def shape(self) -> Shape:
        return Shape(spread=self.spread, depth=self.depth, branching=self.branching, early=self.early)


@dataclass(kw_only=True, slots=True)
class LabRollouts(World):
    SECTION: ClassVar[str] = "policy.lab"
    tokens_per_second: Annotated[float, Ge(0), FREE] = 0.0
    """0: no delay."""
    wrong_after: Annotated[int, FREE] = 0
    """After this number of completions the engine omits one completion and returns another one twice. 0: never."""
    refuse: Annotated[str, FREE] = ""
    """Requests whose id starts with this text return with the finish engine_failed. Empty: no request does."""


@dataclass(kw_only=True, slots=True)
class LabScores(World):
    SECTION: ClassVar[str] = "scorer.lab"
    chains_per_second: Annotated[float, Ge(0), FREE] = 0.0
    """0: no delay."""
    slope: float = 1.0
    """Miscalibration: the log odds of a score are `slope` times those of the oracle, plus `shift`."""
    shift: float = 0.0
    unreadable: float = 0.0
    """Share of the prefixes that get no score, as if a model's answer could not be read."""


@dataclass(kw_only=True, slots=True)
class LabVotes(Faults):
    SECTION: ClassVar[str] = "judge.lab"
    tokens_per_second: Annotated[float, Ge(0), FREE] = 0.0
    """0: no delay."""
    exact: float = 0.8
    early: float = 0.05
    late: float = 0.1
    false_alarm: float = 0.1
    """See `Confusion`."""
    unparseable: float = 0.0
    """The share of critiques without a verdict."""


@dataclass(kw_only=True, slots=True)
class LabPolicyConfig(oracle.OraclePolicyConfig):
    kind: Annotated[str, BY_GROUP] = "lab"
    lab: LabRollouts = field(default_factory=LabRollouts)


@dataclass(kw_only=True, slots=True)
class LabScorerConfig(OracleScorerConfig):
    kind: Annotated[str, BY_GROUP] = "lab"
    lab: LabScores = field(default_factory=LabScores)


@dataclass(kw_only=True, slots=True)
class LabJudgeConfig(OracleJudgeConfig):
    kind: Annotated[str, BY_GROUP] = "lab"
    lab: LabVotes = field(default_factory=LabVotes)


class _Faulty:
    """An engine that does what another one does, with faults. `attempt` counts from 1."""

    def __init__(self, inner: Any, faults: Faults, attempt: int) -> None:
        self.inner = inner
        self._faults = faults
        self._first = attempt == 1
        self._answered = 0
        self._died_of = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def _strike(self, ids: Sequence[str], seconds: float) -> None:
        """Before an answer to what is asked under these ids, which takes some time."""
        own = self._faults
        if self._first and own.fail_after and self._answered >= own.fail_after:
            self._died_of = "fail_after"
        if own.poison and any(each.startswith(own.poison) for each in ids):
            self._died_of = "poison"
        self._check_alive()
        if self._first and own.hang_after and self._answered >= own.hang_after:
            await asyncio.Event().wait()
        self._answered += len(ids)
        await asyncio.sleep(seconds)
        self._check_alive()

    def _check_alive(self) -> None:
        if self._died_of:
            raise EngineDied(f"the oracle died because of {type(self._faults).SECTION}.{self._died_of}")


class LabEngine(_Faulty):
    def __init__(self, inner: oracle.OracleEngine, own: LabRollouts, attempt: int = 1) -> None:
        super().__init__(inner, own, attempt)
        self.inner.pause = self._pause
        self._own = own
        self._will_err = self._first and own.wrong_after > 0

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        async for batch in self.inner.generate(requests, keep_tokens=keep_tokens):
            answers = [*map(self._served, batch)]
            if self._will_err and self._answered - len(batch) >= self._own.wrong_after and len(batch) > 1:
                self._will_err = False
                answers = [answers[0], *answers[:-1]]
            yield answers

    async def _pause(self, batch: Sequence[Completion]) -> None:
        tokens, speed = sum(each.n_tokens for each in batch), self._own.tokens_per_second
        await self._strike([each.request.request_id for each in batch], tokens / speed if speed else 0)

    def _served(self, done: Completion) -> Completion:
        refused = self._own.refuse and done.request.request_id.startswith(self._own.refuse)
        return empty_completion(done.request, Finish.ENGINE_FAILED) if refused else done


class LabScoring(_Faulty):
    def __init__(self, inner: ScoringEngine, settings: LabScorerConfig, attempt: int) -> None:
        super().__init__(inner, settings.lab, attempt)
        self._own = settings.lab
        self._seed = settings.oracle.seed

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        speed = self._own.chains_per_second
        await self._strike([each.chain_id for each in chains], len(chains) / speed if speed else 0)
        found = await self.inner.score(chains)
        return [self._turned(each, chain.prefix_ids) for each, chain in zip(found, chains, strict=True)]

    def _turned(self, found: StepScores, ids: Sequence[str]) -> StepScores:
        pairs = list(zip(found.scores, ids, strict=True))
        scores = tuple(None if score is None else self._score(score, prefix_id) for score, prefix_id in pairs)
        lost = any(after is None is not before for (before, _), after in zip(pairs, scores, strict=True))
        return replace(found, scores=scores, fault=UNREADABLE if lost else found.fault)

    def _score(self, score: float, prefix_id: str) -> float | None:
        own = self._own
        if own.unreadable and uniform(f"{self._seed}:unreadable:{prefix_id}") < own.unreadable:
            return None
        if own.slope == 1.0 and own.shift == 0.0:
            return score
        inside = min(max(score, sys.float_info.min), 1 - sys.float_info.epsilon)
        return sigmoid(own.slope * math.log(inside / (1 - inside)) + own.shift)


class LabCritiques(_Faulty):
    def __init__(self, inner: JudgingEngine, judge: "LabJudge", attempt: int) -> None:
        super().__init__(inner, judge.settings.lab, attempt)
        self._judge = judge
        self._turn = asyncio.Lock()

    async def critiques(self, chain: ChainText) -> Sequence[Critique]:
        own = self._judge.settings.lab
        await self._strike([chain.chain_id], 0)
        found = await self.inner.critiques(chain)
        made = [self._said(each, f"{chain.chain_id}:{vote}", len(chain.steps)) for vote, each in enumerate(found)]
        if own.tokens_per_second:
            async with self._turn:  # one device writes all critiques, one after the other
                await asyncio.sleep(sum(each.n_tokens for each in made) / own.tokens_per_second)
        return made

    def _said(self, critique: Critique, key: str, steps: int) -> Critique:
        settings = self._judge.settings
        if uniform(f"{settings.oracle.seed}:judge:{key}:words") >= settings.lab.unparseable:
            return critique
        reading = self._judge.read((WORDLESS,), Finish.STOP, steps)
        return replace(critique, turns=(WORDLESS,), reading=reading, n_tokens=len(WORDLESS))


class LabPolicy(oracle.Oracle):
    Config = LabPolicyConfig
    settings: LabPolicyConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        own = self.settings.lab
        return cast(Engine, LabEngine(oracle.OracleEngine(self.settings, own.shape), own, around.attempt))


class LabScorer(scores_of_oracle.Oracle):
    Config = LabScorerConfig
    settings: LabScorerConfig

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        own = self.settings
        inner = scores_of_oracle.OracleScoring(own.oracle, newest_only=newest_only, shape=own.lab.shape)
        return cast(ScoringEngine, LabScoring(inner, own, around.attempt))


class LabJudge(OracleJudge):
    Config = LabJudgeConfig
    settings: LabJudgeConfig

    def engine(self, text_engine: Engine | None, around: Surroundings) -> JudgingEngine:
        own = self.settings.lab
        confusion = Confusion(exact=own.exact, early=own.early, late=own.late, false_alarm=own.false_alarm)
        return cast(JudgingEngine, LabCritiques(OracleCritiques(self, confusion), self, around.attempt))
