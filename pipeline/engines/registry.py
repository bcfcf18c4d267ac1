"""The policies by name: built-in ones and those of installed plug-ins. To add a built-in policy, add a line to `ENGINES`."""

from typing import TYPE_CHECKING

from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.config.recorded_settings import Settings, complete_settings, refuse_missing
from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.engines.base import Engine, Policy, Surroundings
    from pipeline.graders.base import Ending

ENGINES: "Registry[type[Policy]]" = Registry(
    "engines",
    noun="policy",
    setting="policy",
    ours={
        "embedded": "pipeline.engines.vllm.policies:Embedded pipeline.engines.settings:EmbeddedConfig",
        "hf": "pipeline.engines.vllm.policies:HuggingFace pipeline.engines.settings:HfConfig",
        "openai": "pipeline.engines.openai.policy:Servers pipeline.engines.settings:OpenAiPolicyConfig",
        "oracle": "pipeline.engines.oracle:Oracle",
    },
    needs=("Config", "engine", "facts", "fingerprint"),
)


def policy_for(settings: PolicyConfig) -> "Policy":
    """The policy that the settings name. Raises UsageError where no policy of that name is installed."""
    usable: Policy = ENGINES.create(settings.kind, complete_settings(settings, ENGINES))
    return usable


def made_up_text(settings: Settings, what: str = "values") -> str:
    """A sentence where a run with these recorded settings has a policy that makes its rollouts up (`PolicyConfig.MADE_UP`).
    `what`: what of the run follows from them, in the plural.

    Empty for other policies, and for one that is not installed here.
    """
    try:
        refuse_missing(settings, PolicyConfig, ENGINES)
        schema: type[PolicyConfig] = ENGINES.settings(str(settings.get("policy.kind", PolicyConfig.usual())))
    except UsageError:
        return ""
    return f"the {what} are made up, for a demonstration or a test: {schema.MADE_UP}" if schema.MADE_UP else ""


def open_engine(
    settings: PolicyConfig,
    sampling: SamplingConfig,
    ending: "Ending | None" = None,
    around: "Surroundings | None" = None,
) -> "Engine":
    """A new engine of the policy, not started. Raises UsageError as `policy_for` does."""
    from pipeline.engines.base import Surroundings

    made = policy_for(settings).engine(sampling, ending, around or Surroundings())
    engine: Engine = ENGINES.guard(settings.kind, made)
    return engine
