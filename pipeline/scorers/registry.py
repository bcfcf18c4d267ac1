"""The scorers by name: built-in ones and those of installed plug-ins. To add a built-in scorer, add a line to `SCORERS`."""

from typing import TYPE_CHECKING

from pipeline.config.recorded_settings import complete_settings
from pipeline.config.score import ScorerConfig
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.engines.base import Surroundings
    from pipeline.scorers.base import Scorer, ScoringEngine

SCORERS: "Registry[type[Scorer]]" = Registry(
    "scorers",
    noun="scorer",
    setting="scorer",
    ours={
        "own": "pipeline.scorers.own:Own pipeline.scorers.settings:OwnConfig",
        "qwen": "pipeline.scorers.qwen:Qwen pipeline.scorers.settings:QwenConfig",
        "math_shepherd": "pipeline.scorers.math_shepherd:MathShepherd pipeline.scorers.settings:MathShepherdConfig",
        "rlhflow": "pipeline.scorers.turns:Rlhflow pipeline.scorers.settings:RlhflowConfig",
        "fover": "pipeline.scorers.turns:Fover pipeline.scorers.settings:FoverConfig",
        "skywork": "pipeline.scorers.skywork:Skywork pipeline.scorers.settings:SkyworkConfig",
        "openai": "pipeline.scorers.openai:OpenAi pipeline.scorers.served_settings:OpenAiScorerConfig",
        "generative": "pipeline.scorers.generative.scorer:Generative pipeline.scorers.served_settings:GenerativeConfig",
        "oracle": "pipeline.scorers.oracle:Oracle pipeline.scorers.settings:OracleScorerConfig",
    },
    needs=("Config", "engine", "fingerprint"),
    answers="pipeline.scorers.base:ANSWERS",
)


def scorer_for(settings: ScorerConfig) -> "Scorer":
    """The scorer that the settings name. Raises UsageError where no scorer of that name is installed."""
    usable: Scorer = SCORERS.create(settings.kind, complete_settings(settings, SCORERS))
    return usable


def open_scorer(settings: ScorerConfig, around: "Surroundings", *, newest_only: bool = False) -> "ScoringEngine":
    """A new engine of the scorer, not started. Raises UsageError as `scorer_for` does."""
    made = scorer_for(settings).engine(around, newest_only=newest_only)
    engine: ScoringEngine = SCORERS.guard(settings.kind, made)
    return engine
