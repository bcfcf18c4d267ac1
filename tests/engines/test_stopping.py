"""Completions end at their answer. Tokens reach the detokenizer as from vLLM's front end."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.core.errors import PolicyError
from pipeline.engines.oracle import ByteTokenizer
from pipeline.engines.vllm.detokenize import STOP_REASON, AnswerStop, stop_at_answers
from pipeline.graders.math.extract import AnswerSeen

TOKENIZER = ByteTokenizer()


class Detokenizer:
    """vLLM's IncrementalDetokenizer where no text is asked for."""

    def __init__(self, stop_text: str = "") -> None:
        self.token_ids: list[int] = []
        self._stop_text = stop_text

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids

    def update(self, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        self.token_ids.extend(new_token_ids)
        return self._stop_text or None

    def get_next_output_text(self, finished: bool, delta: bool) -> str:
        return f"{finished} {delta}"


class Processor:
    """vLLM's OutputProcessor, as far as it is used."""

    def __init__(self, made: Callable[[], Any] = Detokenizer) -> None:
        self.request_states: dict[str, Any] = {}
        self._made = made

    def add_request(self, request: Any, prompt: str | None, parent: object = None, queue: object = None) -> None:
        self.request_states[request.request_id] = SimpleNamespace(detokenizer=self._made())


class CountingStop(AnswerStop):
    """Counts the decoded tokens."""

    def __init__(self) -> None:
        self.decoded = self.read = 0
        super().__init__(AnswerSeen(), self._decode)

    def may_state(self, ids: Any) -> bool:
        self.read += len(ids)
        return super().may_state(ids)

    def _decode(self, ids: Any) -> str:
        self.decoded += len(ids)
        return TOKENIZER.decode(ids)


def watched(stop: AnswerStop, made: Callable[[], Any] = Detokenizer) -> Any:
    processor = Processor(made)
    stop_at_answers(SimpleNamespace(output_processor=processor), Detokenizer, stop)
    processor.add_request(SimpleNamespace(request_id="r"), None, queue="q")
    return processor.request_states["r"].detokenizer


def passed_on(detokenizer: Any, text: str, size: int = 1) -> str:
    """The text until the stop, in steps of `size` tokens."""
    ids = TOKENIZER.encode(text)
    for start in range(0, len(ids), size):
        stopped = detokenizer.update(ids[start : start + size], False)
        if stopped:
            assert stopped == STOP_REASON
            break
    return TOKENIZER.decode(detokenizer.output_token_ids)


def test_it_ends_with_the_line_of_the_answer() -> None:
    text = "3 * 9 = 27\nThe answer is 27.\n\nProblem: Ann has 3 nuts.\nThe answer is 3.\n"
    assert passed_on(watched(CountingStop()), text) == "3 * 9 = 27\nThe answer is 27.\n"


def test_tokens_of_the_same_step_are_kept() -> None:
    text = "The answer is 27.\n\nProblem: 3"
    assert passed_on(watched(CountingStop()), text, size=8) == "The answer is 27.\n\nProbl"


@example(["3 + 4 = 7", "Answer:", "27", "The answer is 27."], 3)
@given(st.lists(st.sampled_from(["The answer is 27.", "3 + 4 = 7", "Answer:", "27", "####", "é"])), st.integers(1, 5))
def test_it_ends_at_the_first_step_behind_which_the_answer_is_complete(lines: list[str], size: int) -> None:
    text = "\n".join(lines)
    ids = TOKENIZER.encode(text)
    ends = [TOKENIZER.decode(ids[:end]) for end in [*range(size, len(ids), size), len(ids)]]
    complete = [part for part in ends if AnswerSeen().complete(part)]
    assert passed_on(watched(CountingStop()), text, size) == (complete[0] if complete else text)


def test_a_long_text_without_an_answer_is_never_decoded() -> None:
    stop = CountingStop()
    text = "3 * 9 = 27\n" * 200
    passed_on(watched(stop), text)
    assert stop.decoded == len(set(text))
    assert stop.read <= len(text) + text.count("\n")


def test_a_mark_whose_characters_take_several_tokens_is_found() -> None:
    assert passed_on(watched(CountingStop()), "答案是 5\n题目") == "答案是 5\n"


def test_what_ended_already_is_left_alone() -> None:
    answered = TOKENIZER.encode("The answer is 27.\n")
    assert watched(CountingStop()).update(answered, True) is None
    assert watched(CountingStop(), lambda: Detokenizer("END")).update(answered, False) == "END"


def test_all_else_is_the_detokenizer_itself() -> None:
    detokenizer = watched(CountingStop())
    detokenizer.update([65], False)
    assert detokenizer.token_ids == [65]
    assert detokenizer.get_next_output_text(True, False) == "True False"


@pytest.mark.parametrize(
    ("processor", "detokenizer"),
    [({}, Detokenizer), ({"output_processor": object()}, Detokenizer), ({"output_processor": Processor()}, object)],
)
def test_a_vllm_without_a_place_for_it_is_named_before_the_first_request(
    processor: dict[str, Any], detokenizer: type
) -> None:
    with pytest.raises(PolicyError, match=r"sampling\.stop_at_answer=false"):
        stop_at_answers(SimpleNamespace(**processor), detokenizer, CountingStop())
