"""A process reward model on servers that run already. How a chain is written and where it is read is that of another scorer,
which `scorer.layout` names; this one asks a server for the numbers instead of computing them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.config.fields import describe_settings, in_common
from pipeline.config.label import DataConfig
from pipeline.core.errors import UsageError
from pipeline.engines.base import EngineNeeds, Surroundings
from pipeline.engines.hugging_face import folder_fingerprint
from pipeline.scorers.base import Scorer, ScoringEngine
from pipeline.scorers.model import ModelScorer
from pipeline.scorers.served_settings import OpenAiScorerConfig, ServedScorerConfig

_OWN = {field.name for field in describe_settings(ServedScorerConfig)} | {"layout", "api"}
"""The settings that say nothing of a layout; `OpenAiScorerConfig` has those of the layouts beside them."""


class OpenAi(Scorer):
    """See the module."""

    Config = OpenAiScorerConfig
    settings: OpenAiScorerConfig

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        from pipeline.scorers.served import ServedEngine

        servers = self.settings.openai
        if not servers.urls:
            raise UsageError(
                f"scorer={self.settings.kind} needs {servers.SECTION}.urls=[http://HOST:8000/v1], the servers of scorer.model"
            )
        return ServedEngine(self.settings, self.layout(), newest_only=newest_only)

    def warnings(self, data: DataConfig) -> Sequence[str]:
        return self.layout().warnings(data)

    def states_reliability(self) -> bool:
        return False

    def layout(self) -> ModelScorer:
        """The scorer whose format the model has. Raises UsageError for a name that is none, and for a setting that it lacks."""
        from pipeline.scorers.registry import SCORERS

        own = self.settings
        schema: Any = SCORERS.settings(own.layout)
        kinds = [name for name in SCORERS.ours if issubclass(SCORERS.load(name), ModelScorer)]
        if own.layout in SCORERS.ours and own.layout not in kinds:
            raise UsageError(
                f"scorer.layout={own.layout} has no layout of tokens: name the scorer for models of this format, one of "
                f"{', '.join(kinds)}"
            )
        given = {
            name: value for name, value in in_common(own, type(own)).items() if name not in _OWN and value is not None
        }
        known = {field.name for field in describe_settings(schema)}
        for name in given:
            if name not in known:
                raise UsageError(f"scorer.{name} has no effect with scorer.layout={own.layout}: leave it out")
        where = own.tokenizer or own.model
        try:
            settings = schema(model=where, revision=own.revision, max_length=own.max_length, **given)
        except ValueError as error:
            raise UsageError(str(error)) from error
        made = SCORERS.create(own.layout, settings)
        if not hasattr(made, "reading"):
            raise UsageError(f"scorer.layout={own.layout} has no layout of tokens: it must be a ModelScorer")
        layout: ModelScorer = made
        return layout

    def fingerprint(self) -> str:
        """A hash of the tokenizer's folder, because the weights of a server are unknown."""
        name = self.settings.tokenizer or self.settings.model
        return folder_fingerprint(
            "scorer.tokenizer", name, "config.json", "with the served model's tokenizer and config.json"
        )

    def needs(self, gpus: float) -> EngineNeeds:
        tokenizer = self.settings.tokenizer or self.settings.model
        return EngineNeeds(hub_names=() if Path(tokenizer).expanduser().is_dir() else (tokenizer,))

    def devices(self) -> int | None:
        return len(self.settings.openai.urls)
