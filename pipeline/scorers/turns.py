"""Chats with a turn for each step, which the model answers with one word: the layout of RLHFlow's and FoVer's models.

    user: first turn, of the problem and the first step
    assistant: GOOD
    user: second step
    assistant: GOOD

A step is read at the token before its answer, where the model would choose the word: the logits of the first tokens of the good
and the bad word. All steps are read in one pass over the chat in which every step is good. So a step is judged as if the
earlier ones were good; published code has that too.

An empty step is an empty turn, and has the score of that. A chain without steps has no turn.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pipeline.scorers.chat import Answer, Chat, Message
from pipeline.scorers.layouts import Piece, word_ids
from pipeline.scorers.model import CausalScorer, Reading
from pipeline.scorers.readouts import TokenPair
from pipeline.scorers.settings import FoverConfig, RlhflowConfig, unescaped

FirstTurn = Callable[[str, str], str]
"""(problem, first step) -> the text of the first turn."""


def _reading(
    tokenizer: Any, first_turn: FirstTurn, *, model: str, good: str, bad: str, system: str | None = None
) -> Reading:
    """How a model is read that answers each step with `good` or `bad`. Raises UsageError for a tokenizer in which the words
    begin alike, or merge with the text before them, and for one without a chat template."""
    chat = Chat(tokenizer, model=model)

    def messages(problem: str, steps: Sequence[str], answer: str = good) -> list[Message]:
        made: list[Message] = [] if system is None else [("system", [system])]
        for number, step in enumerate(steps):
            text = step if number else first_turn(problem, step)
            made += [("user", [text]), ("assistant", [Answer(text=answer)])]
        return made

    def pieces(problem: str, steps: Sequence[str]) -> Sequence[Piece]:
        return chat.pieces(messages(problem, steps)) if steps else ()

    chat.check(messages, "the answers")
    words = [("scorer.good", good), ("scorer.bad", bad)]
    good_id, bad_id = chat.answer_ids(lambda word: messages("1 + 1?", ["2"], word), words)
    return Reading.of_pieces(pieces, TokenPair(good=good_id, bad=bad_id))


class Fover(CausalScorer):
    """FoVer's PRMs, which answer each step with "correct" or "incorrect".

    The first turn holds the problem, a task and the first step, word for word as in `src/prm/preprocessing.py` of
    psunlpgroup/FoVer: its heading "** Sotluion **" is the one that the models are trained with. The score is that of
    `src/prm/postprocessing.py`: the softmax of the logits of the first tokens of the two words, before the answer.
    """

    Config = FoverConfig
    settings: FoverConfig
    what = 'a causal language model that answers every step with "correct" or "incorrect"'

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        before, _, rest = unescaped(own.first_turn).partition("{problem}")
        middle, _, after = rest.partition("{step}")
        return _reading(
            tokenizer,
            lambda problem, step: f"{before}{problem}{middle}{step}{after}",
            model=own.model,
            good=own.good,
            bad=own.bad,
        )


class Rlhflow(CausalScorer):
    """RLHFlow's PRMs (Llama3.1-8B-PRM-Mistral-Data, Llama3.1-8B-PRM-Deepseek-Data) and others of their format, which answer
    each step with `+` or `-`.

    The first turn is `PROBLEM STEP`, as `math-rm/prm_evaluate.py` of RLHFlow/RLHF-Reward-Modeling has it.
    `code/run_eval_prm_rlhflow.py` of QwenLM/ProcessBench has two newlines in place of the blank: `scorer.between='\\n\\n'`.
    The score is the softmax of the logits of `+` and `-`, where RLHFlow's code reads position -3 of the chat so far and
    ProcessBench generates one token.
    """

    Config = RlhflowConfig
    settings: RlhflowConfig
    what = "a causal language model that answers every step with one token"

    def reading(self, tokenizer: Any, config: Any) -> Reading:
        own = self.settings
        between = unescaped(own.between)
        word_ids(tokenizer, [("scorer.good", own.good), ("scorer.bad", own.bad)])
        return _reading(
            tokenizer,
            lambda problem, step: f"{problem}{between}{step}",
            model=own.model,
            good=own.good,
            bad=own.bad,
            system=own.system,
        )
