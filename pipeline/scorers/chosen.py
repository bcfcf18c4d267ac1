"""Which engine computes a model: `scorer.engine`, and what auto means.

auto takes vLLM where it is installed, serves the architecture and what is read of it, and pays:

- On a GPU always: it fills its passes whatever the lengths of chains, spreads a model over GPUs, and has the prefix cache. No
  figure of ours: there was no GPU to measure on.
- On a CPU where only newest steps are read, for the prefix cache: 8.7 times fewer tokens on chains of 700. Whole chains take
  the same processor time with both, 640 ms with vLLM and 680 with transformers for 189 tokens of a model of 135 million
  parameters, and vLLM starts 16 s later or more. So transformers computes those; `scorer.engine=vllm` is for many.

The figures are those of `python -m tests.bench scoring`, with 100 chains.
"""

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec

from pipeline.core.errors import EngineDied, PolicyError
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.vllm.pooling import serves
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.scorers.model import ModelScorer
from pipeline.scorers.prepared import prepare
from pipeline.scorers.readouts import Value
from pipeline.scorers.settings import ModelEngine
from pipeline.scorers.transformers import TransformersEngine
from pipeline.scorers.vllm import VllmScoring


def engine_of(scorer: ModelScorer, around: Surroundings, *, newest_only: bool) -> ScoringEngine:
    """A new engine of a scorer, not started."""
    match scorer.settings.engine:
        case ModelEngine.vllm:
            return VllmScoring(scorer, around, newest_only=newest_only)
        case ModelEngine.transformers:
            return TransformersEngine(scorer, newest_only=newest_only)
        case ModelEngine.auto:
            return ChosenEngine(scorer, around, newest_only=newest_only)


class ChosenEngine:
    """engine=auto: the choice needs the model's config.json, so it is made at the start."""

    def __init__(self, scorer: ModelScorer, around: Surroundings, *, newest_only: bool) -> None:
        self._scorer = scorer
        self._around = around
        self._newest_only = newest_only
        self._engine: ScoringEngine | None = None
        self.model = scorer.name

    @property
    def capacity(self) -> int:
        return 0 if self._engine is None else self._engine.capacity

    async def start(self) -> None:
        by_vllm = await asyncio.to_thread(self._by_vllm)
        if not by_vllm:
            self._engine = TransformersEngine(self._scorer, newest_only=self._newest_only)
            return await self._engine.start()
        self._engine = VllmScoring(self._scorer, self._around, newest_only=self._newest_only)
        try:
            await self._engine.start()
        except PolicyError as error:
            raise type(error)(*error.args, "; or let transformers compute it: scorer.engine=transformers") from error

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        if self._engine is None:
            raise EngineDied("the scoring engine is not running")
        return await self._engine.score(chains)

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()

    def _by_vllm(self) -> bool:
        if find_spec("vllm") is None or not (self._newest_only or on_gpu()):
            return False
        prepared = prepare(self._scorer)
        if isinstance(prepared.reading.readout, Value):
            return False
        return serves(tuple(prepared.config.architectures or ()), cpus=self._around.cpus)


def on_gpu() -> bool:
    """Whether there is a GPU that the installed torch can use."""
    from pipeline.scorers.heads import device_here

    return device_here() != "cpu"
