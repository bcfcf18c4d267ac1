"""Qwen2.5-Math-PRM, ReasonFlux-PRM and others of the class `Qwen2ForProcessRewardModel`: a chat whose answer is the steps, each
followed by the tag `<extra_0>`; two classes are read at every tag.

    system: Please reason step by step, and put your final answer within \\boxed{}.
    user: PROBLEM
    assistant: STEP<extra_0>STEP<extra_0>

The text is that of the model card of Qwen/Qwen2.5-Math-PRM-7B, and the score that of its `make_step_rewards`: the softmax of
the two classes, second class, at each tag. `make_step_rewards` drops probabilities that are exactly 0, and then takes one
step's score for another's; here a score of 0 stays. An empty step has its tag, and the score there.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.config.choices import Splitter
from pipeline.scorers.chat import Chat, Message, Part, Tag
from pipeline.scorers.layouts import check_apart, tag_id
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.readouts import Classes, Readout
from pipeline.scorers.settings import QwenConfig

CLASSES = 2


class Qwen(ModelScorer):
    """See the module."""

    Config = QwenConfig
    settings: QwenConfig
    architectures = ("ForProcessRewardModel",)
    what = "a model with Qwen's head of two layers"
    splitter = Splitter.blank_line

    def load(self, device: str, readout: Readout) -> Any:
        from pipeline.scorers.heads import two_layers

        return two_layers(self.settings, device, classes=CLASSES)

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        tag = Tag(text=own.tag, id=tag_id(tokenizer, "scorer.tag", own.tag))
        check_apart(tokenizer, "scorer.tag", own.tag)
        chat = Chat(tokenizer, model=own.model, placed=[own.tag])

        def messages(problem: str, steps: Sequence[str]) -> list[Message]:
            answer: list[Part] = [part for step in steps for part in (step, tag)]
            system: list[Message] = [] if own.system is None else [("system", [own.system])]
            return [*system, ("user", [problem]), ("assistant", answer)]

        chat.check(messages, f"the tag {own.tag!r}")
        return Reading.of_pieces(lambda problem, steps: chat.pieces(messages(problem, steps)), Classes(count=CLASSES))
