"""Cuts what a policy writes into steps, while it is being written. Pure.

A policy is asked for the text up to a step's end. Where the end of a step is always a certain text, the engine stops there.
Elsewhere it writes pieces of CHUNK tokens, until they hold the whole step.

The steps are those of the whole chain, as `data.steps` cuts it. So a step is complete only where no continuation would move
its end: a line that ends within a formula goes on. Not covered: formulas of more than MOST_HELD tokens, which are cut like
other text; patterns of a user's own whose matches depend on more than the next character, or on more than the step before.
"""

from bisect import bisect, insort
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig
from pipeline.data.formulas import may_have_formulas, open_formula
from pipeline.data.prompts import TokenCut, cut_on_tokens
from pipeline.data.steps import split
from pipeline.engines.vllm.detokenize import BROKEN, MOST_CONTEXT, Decode, completion_text, text_after

CHUNK = 64
"""Tokens of a piece where no text ends every step: about one step, so that little is dropped and few requests are made."""
PEEK = 8
"""Tokens of the first piece after a line that may have ended within a formula. They often show that it has not (`$5` is
money), and then what follows the line is dropped."""
MOST_HELD = 256
"""Tokens after which a formula that is still open is none."""
_STOPS = {Splitter.newline: ("\n",), Splitter.blank_line: ("\n\n",), Splitter.math_shepherd: ("ки",)}
_FOLLOWED_BY = {Splitter.math_shepherd: (" X",), Splitter.sentence: ("X", "。"), Splitter.regex: ("X", "x", "1")}
_ANYTHING = ("X",)
"""What may follow: a step is complete that ends at the same place before each of these."""
NO_STEPS = TokenCut(ends=(), token_ends=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is written: its text, and the ends of its complete steps. `held`: a step would end if no formula were open."""

    text: str
    cut: TokenCut
    held: bool = False


class StepCutter:
    """See the module. `stops`: the texts that end every step; empty if there are none. `chunk`: see CHUNK."""

    def __init__(self, data: DataConfig, chunk: int = CHUNK) -> None:
        self.chunk = chunk
        self._data = data
        self.whole_chains = data.splitter is Splitter.whole
        self.stops = _STOPS.get(data.splitter, ())
        self._followed_by = _FOLLOWED_BY.get(data.splitter, _ANYTHING)

    def stopped(self, text: str) -> bool:
        """Whether a text ends with one of the stops."""
        return bool(self.stops) and text.endswith(self.stops)

    def cut(
        self,
        before: str,
        prompt_ids: Sequence[int],
        token_ids: Sequence[int],
        decode: Decode,
        *,
        ended: bool,
        patient: bool = True,
    ) -> Piece:
        """The steps of tokens after a prompt, whose ends are ends of tokens: all if the text has `ended`, else those that are
        complete. `before`: the text of the last step before them. `patient`: a formula that is open may still be closed."""
        texts = _Texts(prompt_ids, token_ids, decode)
        size, text = len(token_ids), texts.whole
        if not text.strip():
            return Piece(text=text, cut=NO_STEPS)
        if ended:
            ends = _after(before, self._split(before + text))
            return Piece(text=text, cut=cut_on_tokens(text, ends, range(size), texts.of))
        if self._is_one_step(before, text) and texts.complete:
            return Piece(text=text, cut=TokenCut(ends=(len(text),), token_ends=(size,)))
        complete = self._complete(before + text)
        opened = open_formula(before + text) if complete and patient else None
        certain = complete if opened is None else [end for end in complete if end <= opened]
        held = len(certain) < len(complete)
        ends = _after(before, certain)
        if not ends:
            return Piece(text=text, cut=NO_STEPS, held=held)
        if ends == (len(text),) and texts.complete:
            return Piece(text=text, cut=TokenCut(ends=ends, token_ends=(size,)), held=held)
        # One more token stands for those that follow: its step is not complete.
        cut = cut_on_tokens(f"{text}X", (*ends, len(text) + 1), range(size + 1), texts.of)
        return Piece(text=text, cut=TokenCut(ends=cut.ends[:-1], token_ends=cut.token_ends[:-1]), held=held)

    def _is_one_step(self, before: str, text: str) -> bool:
        """Whether a text that is not blank is one step for certain: a line where lines are steps, without a formula near it.
        This is the usual case, and found without cutting."""
        if self._data.splitter is not Splitter.newline or text.find("\n") != len(text) - 1:
            return False
        return not may_have_formulas(before) and not may_have_formulas(text)

    def _complete(self, text: str) -> list[int]:
        """The ends of the steps that end there whatever follows."""
        first, *others = (self._split(text + more)[:-1] for more in self._followed_by)
        return [end for end in first if end <= len(text) and all(end in ends for ends in others)]

    def _split(self, text: str) -> tuple[int, ...]:
        return split(text, self._data.splitter, self._data.pattern)


class _Texts:
    """The texts of tokens after a prompt, by their numbers. The number after the last one is that of a token "X".

    `whole`: the text of all, without an incomplete character at its end. `complete`: there is none."""

    def __init__(self, prompt_ids: Sequence[int], token_ids: Sequence[int], decode: Decode) -> None:
        self._prompt_ids = prompt_ids
        self._ids = token_ids
        self._decode = decode
        size, text = len(token_ids), text_after(decode, prompt_ids, token_ids)
        self.complete = not text.endswith(BROKEN)
        self.whole = text if self.complete else completion_text(decode, prompt_ids, token_ids)
        self._known = {0: "", size: text, size + 1: f"{self.whole}X"}
        self._anchors = [0]

    def of(self, numbers: Sequence[int]) -> str:
        """The text of the first tokens, or of a single one. An incomplete character at its end is a replacement character."""
        first, count = (numbers[0], len(numbers)) if numbers else (0, 0)
        if first:
            return "X" if first == len(self._ids) else self._piece(first, first + count)
        text = self._known.get(count)
        if text is None:
            anchor = self._anchors[bisect(self._anchors, count) - 1]
            text = self._known[count] = self._known[anchor] + self._piece(anchor, count)
            if not text.endswith(BROKEN):
                insort(self._anchors, count)
        return text

    def _piece(self, begin: int, end: int) -> str:
        before = self._ids[max(0, begin - MOST_CONTEXT) : begin]
        if len(before) < MOST_CONTEXT:
            before = (*self._prompt_ids[-MOST_CONTEXT:], *before)
        return text_after(self._decode, before, self._ids[begin:end])


def _after(before: str, ends: Sequence[int]) -> tuple[int, ...]:
    """The ends that lie after a text, counted from its end."""
    return tuple(end - len(before) for end in ends if end > len(before))
