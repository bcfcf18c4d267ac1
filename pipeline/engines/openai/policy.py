"""The policy on running OpenAI-compatible servers, before they are asked for completions (`policy=openai`)."""

from pathlib import Path

from pipeline.config.label import SamplingConfig
from pipeline.engines.base import Engine, EngineNeeds, Policy, PolicyFacts, Surroundings
from pipeline.engines.hugging_face import folder_fingerprint
from pipeline.engines.settings import OpenAiPolicyConfig
from pipeline.graders.base import Ending


class Servers(Policy):
    """See the module."""

    Config = OpenAiPolicyConfig
    settings: OpenAiPolicyConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        from pipeline.engines.openai.engine import OpenAiEngine

        return OpenAiEngine(self.settings, sampling)

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        servers = self.engine(sampling, None, Surroundings())
        await servers.start()
        await servers.close()
        return servers

    def fingerprint(self) -> str:
        """A hash of the tokenizer's folder, because the weights of a server are unknown."""
        name = self.settings.tokenizer or self.settings.model
        return folder_fingerprint(
            "policy.tokenizer", name, "tokenizer_config.json", "with the served model's tokenizer"
        )

    def needs(self, gpus: float) -> EngineNeeds:
        tokenizer = self.settings.tokenizer or self.settings.model
        return EngineNeeds(hub_names=() if Path(tokenizer).expanduser().is_dir() else (tokenizer,))

    def devices(self) -> int | None:
        return len(self.settings.openai.urls)
