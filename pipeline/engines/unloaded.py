"""What prompts are made with, of a policy that is not loaded: its tokenizer and its context."""

from dataclasses import dataclass

from pipeline.config.choices import PolicyKind
from pipeline.config.label import LabelConfig
from pipeline.data.prompts import Tokenizer
from pipeline.engines.base import PolicyFacts
from pipeline.engines.embedded import embedded_model
from pipeline.engines.model_config import planned_context
from pipeline.engines.openai.engine import OpenAiEngine
from pipeline.engines.oracle import OracleEngine
from pipeline.engines.tokenizer import load_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """See `base.PolicyFacts`; its name is not known before it is loaded."""

    tokenizer: Tokenizer
    max_model_len: int
    policy: str = ""


async def unloaded(config: LabelConfig) -> PolicyFacts:
    """The facts of the policy that `label` would load, or of the servers it would ask. Raises PolicyError."""
    policy = config.policy
    match policy.kind:
        case PolicyKind.oracle:
            return OracleEngine(policy)
        case PolicyKind.openai:
            servers = OpenAiEngine(policy, config.sampling)
            await servers.start()
            await servers.close()
            return servers
        case PolicyKind.embedded:
            model = str(embedded_model())
        case PolicyKind.hf:
            model = policy.model
    return Unloaded(
        tokenizer=load_tokenizer(model, policy.revision, "policy.model"), max_model_len=planned_context(policy, model)
    )
