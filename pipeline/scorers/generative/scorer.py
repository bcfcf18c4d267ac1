"""Generative process reward models and chat models as judges. The text comes from a policy: one on servers where there are
URLs, else one that vLLM runs here. So placement, retries and messages are those of the policies.
"""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.config.fields import in_common
from pipeline.config.label import SamplingConfig
from pipeline.core.errors import UsageError, named
from pipeline.engines.base import EngineNeeds, Policy, Surroundings
from pipeline.engines.hugging_face import NO_TEMPLATE
from pipeline.engines.registry import policy_for
from pipeline.engines.settings import HfConfig, OpenAiPolicyConfig
from pipeline.judges.model import PUBLISHED
from pipeline.judges.templates.base import Template
from pipeline.scorers.base import Scorer, ScoringEngine
from pipeline.scorers.served_settings import NAMES, GenerativeConfig, VerdictRead

OWN_NAMES: Mapping[str, str] = {
    **NAMES,
    "policy": "model",
    NO_TEMPLATE: "give a chat model, or scorer.tokenizer=NAME with one",
}
"""What errors of a policy say here."""


class Generative(Scorer):
    """See the module."""

    Config = GenerativeConfig
    settings: GenerativeConfig

    def __init__(self, settings: GenerativeConfig) -> None:
        self.settings = settings
        self.loads_model = not settings.openai.urls

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        from pipeline.scorers.generative.engine import GenerativeEngine

        style = self.style()
        text_engine = self.policy().engine(self.sampling(), None, around)
        return GenerativeEngine(self.settings, style, text_engine, newest_only=newest_only)

    def states_reliability(self) -> bool:
        return self.settings.votes > 1

    def style(self) -> Template:
        """How chains are put to the model. Raises UsageError for a verdict of which no probability can be read."""
        own = self.settings
        kind, probability = PUBLISHED[own.style.value], own.verdict is VerdictRead.probability
        if probability and kind.words is None:
            raise UsageError(
                f"scorer.style={own.style.value} has an index for a verdict, not a word: set scorer.verdict=parsed, with "
                "scorer.votes=8 for probabilities"
            )
        if probability and not own.openai.urls:
            raise UsageError(
                "scorer.verdict=probability needs servers, which state probabilities of words: set "
                "scorer.openai.urls=[http://HOST:8000/v1], or scorer.verdict=parsed with scorer.votes=8"
            )
        return kind(own.index_base)

    def sampling(self) -> SamplingConfig:
        """How critiques are sampled."""
        own = self.settings
        top_k = None if own.openai.extensions else 0
        return PUBLISHED[own.style.value].sampled(
            own.votes, temperature=own.temperature, top_p=own.top_p, top_k=top_k, max_tokens=own.max_tokens
        )

    def policy(self) -> Policy:
        """The policy that writes."""
        own = self.settings
        kind = OpenAiPolicyConfig if own.openai.urls else HfConfig
        shared = in_common(own, kind)
        return policy_for(kind(**{**shared, "kind": kind().kind, "max_model_len": own.max_length}))

    async def fetch(self) -> None:
        with named(OWN_NAMES):
            await self.policy().fetch()

    def fingerprint(self) -> str:
        with named(OWN_NAMES):
            return self.policy().fingerprint()

    def devices(self) -> int | None:
        return self.policy().devices()

    def choose_tensor_parallel(self, gpus: int, memory: float | None) -> int:
        with named(OWN_NAMES):
            return self.policy().choose_tensor_parallel(gpus, memory)

    def given_tensor_parallel(self) -> int | None:
        return self.policy().given_tensor_parallel()

    def with_tensor_parallel(self, gpus: int) -> GenerativeConfig:
        return self.settings if self.settings.openai.urls else replace(self.settings, tensor_parallel=gpus)

    def needs(self, gpus: float) -> EngineNeeds:
        return self.policy().needs(gpus)

    def uses_gpus(self) -> bool | None:
        return self.policy().uses_gpus()

    def check_gpus(self, gpus: float) -> None:
        with named(OWN_NAMES):
            self.policy().check_gpus(gpus)
