"""Scorers that load a model and read it at one token of each step. A subclass says how a chain is written (`reading`), what is
read there, and which architectures have the head; the engines compute it.

Nothing here loads a library: the engine does, when it starts.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig, steps_setting
from pipeline.core.errors import ClusterError, PlaceError, UsageError
from pipeline.core.records import ChainText
from pipeline.engines.base import EngineNeeds, Surroundings
from pipeline.engines.detected_hardware import on_gpu_build
from pipeline.engines.hugging_face import fetch_model, folder_fingerprint, planned_architecture
from pipeline.engines.roofline import least_devices, weight_bytes
from pipeline.engines.vllm.arguments import GPU_MEMORY_SHARE
from pipeline.scorers.base import TOO_LONG, Scorer, ScoringEngine, StepScores
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.layouts import Piece, laid_out
from pipeline.scorers.readouts import Readout, TokenPair
from pipeline.scorers.settings import ModelEngine, ModelScorerConfig

Result = TypeVar("Result")
Encoder = Callable[[str, Sequence[str], int], EncodedChain]
"""(problem, steps, largest number of tokens) -> the tokens that the model reads, and the token of each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a model reads a chain: `encode` writes it in the model's tokens, `readout` says what is read at each step's token."""

    encode: Encoder
    readout: Readout

    @classmethod
    def of_pieces(cls, pieces: Callable[[str, Sequence[str]], Iterable[Piece]], readout: Readout) -> "Reading":
        """That of a layout: (problem, steps) -> `pieces`."""

        def encode(problem: str, steps: Sequence[str], max_length: int) -> EncodedChain:
            return laid_out(pieces(problem, steps), steps=len(steps), max_length=max_length)

        return cls(encode=encode, readout=readout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What an engine needs before the weights. `config`, `tokenizer`: as transformers loads them. `context`: the largest number
    of tokens that they allow. `max_length`: that of a chain, by the settings too."""

    config: Any
    tokenizer: Any
    reading: Reading
    context: int
    max_length: int

    def encoded(self, chains: Sequence[ChainText], *, newest_only: bool) -> list[EncodedChain]:
        """The chains in tokens. `newest_only`: only their last steps are read."""
        encoded = [self.reading.encode(chain.problem, chain.steps, self.max_length) for chain in chains]
        return [chain.newest() for chain in encoded] if newest_only else encoded


class ModelScorer(Scorer):
    """A process reward model that is read at one token of each step. A subclass defines `reading` and the attributes."""

    loads_model = True
    settings: ModelScorerConfig

    architectures: ClassVar[tuple[str, ...]]
    """Endings of the names in `architectures` of a config.json that has the head."""
    what: ClassVar[str]
    """What kind of model it is for, for messages: `a model that train has written`."""
    splitter: ClassVar[Splitter | None] = None
    """Where the steps end that published models of the kind were trained on; None: they differ, or it is not known."""

    @abstractmethod
    def load(self, device: str, readout: Readout) -> Any:
        """Load the model for transformers: a `heads.TokenModel` with the numbers of `readout`. Raises UsageError if it cannot
        be loaded."""
        ...

    @abstractmethod
    def reading(self, tokenizer: Any, config: Any) -> Reading:
        """How the model reads chains, from its tokenizer and its config.json, as transformers loads them. Raises UsageError for
        a tokenizer that the format does not work with."""
        ...

    def prepared(self) -> Prepared:
        """Load config.json and tokenizer and check that the scorer is one for this model. Raises UsageError, and PlaceError
        without the libraries."""
        try:
            from pipeline.scorers import heads
        except ImportError as error:
            raise PlaceError(
                f"{error}: install the train extra: pip install 'stepvalue[train]', or '.[train]' in a checkout"
            ) from error
        own = self.settings
        heads.silence_libraries()
        config = heads.load_config(own.model, own.revision)
        self.check_architecture(config)
        tokenizer = heads.load_tokenizer(own.model, own.revision)
        context = heads.context_of(config, tokenizer)
        return Prepared(
            config=config,
            tokenizer=tokenizer,
            reading=self.reading(tokenizer, config),
            context=context,
            max_length=min(context, own.max_length or context),
        )

    @property
    def name(self) -> str:
        """The model, as written to the column `model`."""
        own = self.settings
        return own.model if own.revision is None else f"{own.model}@{own.revision}"

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        from pipeline.scorers.local import LocalEngine

        return LocalEngine(self, around, newest_only=newest_only)

    async def fetch(self) -> None:
        await asyncio.to_thread(fetch_model, self.settings.model, self.settings.revision, weights=True)

    def fingerprint(self) -> str:
        return folder_fingerprint("scorer.model", self.settings.model, "config.json", self.what)

    def trained_steps(self) -> str | None:
        """How the texts of the model's training were divided into steps (`DataConfig.steps`); None where it is not known."""
        return None if self.splitter is None else steps_setting(self.splitter.value, None)

    def warnings(self, data: DataConfig) -> Sequence[str]:
        trained = self.trained_steps()
        if trained is None or trained == data.steps:
            return ()
        return (
            f"scorer.model={self.settings.model} is trained on steps as {trained} divides them, and {data.steps} divides "
            "these: its scores are less reliable for other steps",
        )

    def states_reliability(self) -> bool:
        return False

    def given_tensor_parallel(self) -> int | None:
        return self.settings.tensor_parallel

    def with_tensor_parallel(self, gpus: int) -> ModelScorerConfig:
        return replace(self.settings, tensor_parallel=gpus)

    def choose_tensor_parallel(self, gpus: int, memory: float | None) -> int:
        own = self.settings
        if own.engine is ModelEngine.transformers or memory is None:
            return 1
        sizes = planned_architecture(own.model, own.revision, dtype=own.dtype, quantization=None, kv_dtype="auto")
        if sizes is None:
            return 1
        share = own.memory_share or GPU_MEMORY_SHARE
        parts = least_devices(
            sizes, memory=memory, share=share, at_most=gpus, sequences=own.max_num_seqs, context=own.max_length
        )
        if parts is None:
            raise ClusterError(
                f"{self.name} has {weight_bytes(sizes) / 1e9:,.0f} GB of weights and a context of "
                f"{own.max_length or sizes.context:,} tokens, too much for a node's {gpus} GPUs of {memory / 1e9:,.0f} GB: "
                "lower scorer.max_length or scorer.max_num_seqs, use larger GPUs, or set the number of GPUs per model "
                "(scorer.tensor_parallel)"
            )
        return parts

    def needs(self, gpus: float) -> EngineNeeds:
        share = self.settings.memory_share or GPU_MEMORY_SHARE * min(1.0, gpus or 1.0)
        folder = Path(self.settings.model).expanduser()
        if folder.is_dir():
            return EngineNeeds(memory_share=share, folder=str(folder.resolve()))
        return EngineNeeds(memory_share=share, hub_names=(self.settings.model,))

    def uses_gpus(self) -> bool | None:
        return on_gpu_build() if self.settings.engine is ModelEngine.vllm else None

    def check_gpus(self, gpus: float) -> None:
        share = self.settings.memory_share
        if share is not None and 0 < gpus < 1 and share > gpus:
            raise UsageError(
                f"scorer.memory_share={share:g} is more of a GPU than a worker has with cluster.gpus_per_worker={gpus:g}: set "
                f"scorer.memory_share={GPU_MEMORY_SHARE * gpus:g}, or leave it out"
            )

    def check_architecture(self, config: Any) -> None:
        """Raise UsageError for a config.json of another kind of model."""
        found = tuple(config.architectures or ())
        if not any(name.endswith(self.architectures) for name in found):
            others = _scorers_for(found)
            remedy = f"{' or '.join(others)} reads such models" if others else "choose another scorer or model"
            raise UsageError(
                f"scorer.model={self.settings.model} is {', '.join(found) or 'of no known architecture'}, but "
                f"scorer={self.settings.kind} is for {self.what} ({' or '.join(self.architectures)}): {remedy}"
            )


class CausalScorer(ModelScorer):
    """A causal language model of which two next tokens are read."""

    architectures = ("ForCausalLM",)

    def load(self, device: str, readout: Readout) -> Any:
        from pipeline.scorers.heads import causal

        assert isinstance(readout, TokenPair)
        return causal(self.settings, device, readout)


def _scorers_for(architectures: Sequence[str]) -> list[str]:
    """`scorer=NAME` of the scorers of ours that read a model of these architectures."""
    from pipeline.scorers.registry import SCORERS

    found = {name: getattr(SCORERS.load(name), "architectures", ()) for name in SCORERS.ours}
    return [
        f"scorer={name}" for name, ends in found.items() if ends and any(each.endswith(ends) for each in architectures)
    ]


def scores_at(chain: EncodedChain, scores: Sequence[float], steps: int, computed: int | None = None) -> StepScores:
    """The scores of a chain of `steps` steps from those at its ends, in order. Where the chain is read at the end of its newest
    step alone, the other steps have none. `computed`: tokens that the model computed. None: all."""
    missing = (None,) * chain.left_out
    unasked = (None,) * (steps - len(chain.ends) - chain.left_out)
    return StepScores(
        scores=(*unasked, *scores, *missing),
        positions=(*unasked, *chain.ends, *missing),
        fault=TOO_LONG if chain.left_out else "",
        n_tokens=len(chain.ids),
        n_computed=(len(chain.ids) if chain.ends else 0) if computed is None else computed,
    )


async def all_of(asked: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """All results. Where one fails, the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
