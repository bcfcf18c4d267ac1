"""Cuts what a policy writes into steps, while it is being written. Pure.

A policy is asked for the text up to a step's end. Where the end of a step is always a certain text, the engine stops there.
Elsewhere it writes pieces of CHUNK tokens, until they hold the whole step; what it wrote after the step is dropped, and
counted."""

from collections.abc import Sequence

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig
from pipeline.data.prompts import TokenCut, cut_on_tokens
from pipeline.data.steps import split
from pipeline.engines.vllm.detokenize import Decode, completion_text

CHUNK = 64
"""Tokens of a piece where no text ends every step: about one step, so that little is dropped and few requests are made."""
_STOPS = {Splitter.newline: ("\n",), Splitter.blank_line: ("\n\n",), Splitter.math_shepherd: ("ки",)}
_NEXT = {Splitter.math_shepherd: " X"}
_NEXT_STEP = "X"
"""What a next step may begin with: a splitter that cuts before it says that the step before it is complete."""


class StepCutter:
    """See the module. `stops`: the texts that end every step; empty if there are none."""

    def __init__(self, data: DataConfig) -> None:
        self._data = data
        self.whole_chains = data.splitter is Splitter.whole
        self.stops = _STOPS.get(data.splitter, ())
        self._next = _NEXT.get(data.splitter, _NEXT_STEP)

    def stopped(self, text: str) -> bool:
        """Whether a text ends with one of the stops."""
        return bool(self.stops) and text.endswith(self.stops)

    def complete(self, text: str) -> int:
        """The number of steps in a text that are complete, whatever follows."""
        return len(self._ends(text + self._next)) - 1 if text.strip() else 0

    def cut(self, prompt_ids: Sequence[int], token_ids: Sequence[int], decode: Decode) -> tuple[str, TokenCut]:
        """The text of tokens after a prompt, and the ends of its steps, which are ends of tokens. A blank text has no steps."""

        def text_of(ids: Sequence[int]) -> str:
            return completion_text(decode, prompt_ids, ids)

        text = text_of(token_ids)
        return text, cut_on_tokens(text, self._ends(text), token_ids, text_of)

    def _ends(self, text: str) -> Sequence[int]:
        return split(text, self._data.splitter, self._data.pattern)
