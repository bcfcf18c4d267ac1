"""Skywork-o1-Open-PRM: the problem and a newline, then every line of the steps with the newline as step token after it; a value
is read at the step token.

The layout is `prepare_input` of SkyworkAI/skywork-o1-prm-inference (`model_utils/io_utils.py`), where every line is a step of
its own: BOS, the problem with a newline, then for each line its own tokens and the step token. The score is the sigmoid of the
value head there (`derive_step_rewards` of `SkyworkPRMModel` with `return_probs=True`).

A step of several lines is written as they are and is read at its last one. Newlines at the end of a step are left out, so that
a text which ends in a newline has no empty step after it; an empty step is the step token alone, and has the value there.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.config.choices import Splitter
from pipeline.core.errors import UsageError
from pipeline.data.prompts import plain_encoder
from pipeline.scorers.layouts import Piece, tag_id
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.readouts import Readout, Value
from pipeline.scorers.settings import SkyworkConfig, unescaped


class Skywork(ModelScorer):
    """See the module."""

    Config = SkyworkConfig
    settings: SkyworkConfig
    architectures = ("ForPrmModel",)
    what = "a model with Skywork's value head"
    splitter = Splitter.newline

    def load(self, device: str, readout: Readout) -> Any:
        from pipeline.scorers.heads import value_head

        return value_head(self.settings, device)

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        token = unescaped(own.step_token)
        end = tag_id(tokenizer, "scorer.step_token", token)
        bos = tokenizer.bos_token_id
        if bos is None:
            raise UsageError(
                f"the tokenizer of {own.model} has no bos_token, with which every chain of scorer={own.kind} begins: take the "
                "tokenizer that was published with the model"
            )
        plain = plain_encoder(tokenizer, [token])

        def pieces(problem: str, steps: Sequence[str]) -> Iterator[Piece]:
            lines = [_without_ends(step, token).split(token) for step in steps]
            head, *found = plain([problem + "\n", *(line for step in lines for line in step)])
            yield Piece(ids=(bos, *head))
            rest = iter(found)
            for step in lines:
                for number, _ in enumerate(step, start=1):
                    yield Piece(ids=next(rest))
                    yield Piece(ids=(end,), read=0 if number == len(step) else None)

        return Reading.of_pieces(pieces, Value())


def _without_ends(step: str, token: str) -> str:
    while step.endswith(token):
        step = step.removesuffix(token)
    return step
