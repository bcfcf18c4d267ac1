"""Models that `train` writes, and those of TRL's PRMTrainer: two classes at every token, read at the last token of each step.

The problem and every step are tokenized alone, each with the separator of the training after it.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.config.label import DataConfig
from pipeline.core.errors import UsageError
from pipeline.core.output import say
from pipeline.data.prompts import encoder
from pipeline.engines.hugging_face import planned_config
from pipeline.scorers.encoding import SEPARATOR_KEY, STEPS_KEY, check_separator, encode_chain
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.readouts import Classes, Readout
from pipeline.scorers.settings import OwnConfig, unescaped

CLASSES = 2


class Own(ModelScorer):
    """See the module."""

    Config = OwnConfig
    settings: OwnConfig
    architectures = ("ForTokenClassification",)
    what = "a model with two classes at every token, such as `train` writes"

    def load(self, device: str, readout: Readout) -> Any:
        from pipeline.scorers.heads import token_classes

        return token_classes(self.settings, device)

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        self._check_classes(config)
        separator = self._separator(config)
        check_separator(tokenizer, separator)
        encode, bos = encoder(tokenizer), tokenizer.bos_token_id
        return Reading(
            encode=lambda problem, steps, max_length: encode_chain(
                encode, problem, steps, separator=separator, bos=bos, max_length=max_length
            ),
            readout=Classes(count=CLASSES),
        )

    def trained_steps(self) -> str | None:
        recorded = self._recorded(STEPS_KEY)
        return recorded if isinstance(recorded, str) else None

    def warnings(self, data: DataConfig) -> Sequence[str]:
        given, recorded = self.settings.separator, self._recorded(SEPARATOR_KEY)
        other = given is not None and recorded is not None and unescaped(given) != recorded
        return (*super().warnings(data), *([_other_separator(given, recorded)] if other else []))

    def _recorded(self, key: str) -> Any:
        config = planned_config(self.settings.model, self.settings.revision)
        return None if config is None else config.get(key)

    def _check_classes(self, config: Any) -> None:
        if config.num_labels != CLASSES:
            raise UsageError(
                f"scorer.model={self.settings.model} has {config.num_labels} classes, and scorer={self.settings.kind} needs "
                "two, bad and good: name a folder that `train` has written"
            )

    def _separator(self, config: Any) -> str:
        given, recorded = self.settings.separator, getattr(config, SEPARATOR_KEY, None)
        if given is None and recorded is None:
            raise UsageError(
                f"the config.json of {self.settings.model} has no {SEPARATOR_KEY}: give scorer.separator=..., the text after "
                "each step in training"
            )
        if given is None:
            return str(recorded)
        separator = unescaped(given)
        if recorded is not None and separator != recorded:
            say(f"warning: {_other_separator(separator, recorded)}")
        return separator


def _other_separator(given: object, recorded: object) -> str:
    return f"scorer.separator={given!r} is not the separator of the training, {recorded!r}: scores with another one are worse"
