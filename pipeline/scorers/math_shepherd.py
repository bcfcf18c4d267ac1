"""Math-Shepherd's PRM (peiyi9979/math-shepherd-mistral-7b-prm) and others of its format: one text with the tag ` ки` after
every step, where the model says + or -.

    PROBLEM STEP ки
    STEP ки

The text, the tag and the score are those of the model card: the softmax of the next-token logits of `+` and `-` at each tag.
The card scores every token that equals the tag, so a Russian word in a problem adds steps; here a step is read at the tag that
follows it, and nowhere else. The card numbers the steps (`Step 1: `) because the training data do: `scorer.numbered=true` adds
the numbers to steps that lack them.

The text between two tags is tokenized apart from them, after the tag where the tokenizer asks what stands before. For texts
without blanks at the ends of steps the tokens are those of the whole text; `reading` compares them for a sample chain. An empty
step has its tag, and the score there.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.data.prompts import plain_encoder
from pipeline.scorers.layouts import Piece, check_same, following, tag_id, whole_ids, word_ids
from pipeline.scorers.model import CausalScorer, Reading
from pipeline.scorers.readouts import TokenPair
from pipeline.scorers.settings import MathShepherdConfig, unescaped

_NUMBERED = re.compile(r"Step \d+: ")
_BEFORE = "1."
"""Ordinary text before a tag, which has tokens of its own."""
_SAMPLE = ("What is 1 + 1?", ("Step 1: 1 + 1 = 2.", "Step 2: The answer is 2"))


class MathShepherd(CausalScorer):
    """See the module."""

    Config = MathShepherdConfig
    settings: MathShepherdConfig
    what = "a causal language model that is read at a tag after every step"

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        between = unescaped(own.between)
        tag = tag_id(tokenizer, "scorer.tag", own.tag, after=_BEFORE)
        good, bad = word_ids(tokenizer, [("scorer.good", own.good), ("scorer.bad", own.bad)])
        plain = plain_encoder(tokenizer, [own.tag, own.tag.strip()])
        later = following(plain, _BEFORE + own.tag)
        start = whole_ids(tokenizer, "", special=True)[:1]
        bos = [token for token in start if token == tokenizer.bos_token_id]

        def pieces(problem: str, steps: Sequence[str]) -> Iterator[Piece]:
            yield Piece(ids=bos)
            texts = list(self._numbered(steps))
            first, rest = plain([f"{problem} {text}" for text in texts[:1]]), texts[1:]
            for ids in (*first, *later([between + text for text in rest])):
                yield Piece(ids=ids)
                yield Piece(ids=(tag,), read=0)

        problem, steps = _SAMPLE
        text = f"{problem} {between.join(step + own.tag for step in steps)}"
        check_same(
            [token for piece in pieces(problem, steps) for token in piece.ids][len(bos) :],
            whole_ids(tokenizer, text),
            model=own.model,
            decode=tokenizer.decode,
            what=f"the tag {own.tag!r}",
        )
        return Reading.of_pieces(pieces, TokenPair(good=good, bad=bad))

    def _numbered(self, steps: Sequence[str]) -> Iterator[str]:
        for number, step in enumerate(steps, start=1):
            missing = self.settings.numbered and not _NUMBERED.match(step)
            yield f"Step {number}: {step}" if missing else step
