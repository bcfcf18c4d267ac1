"""Completions end at their answer, and their text is what the detokenizer that vLLM uses makes of its tokens one by one."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from pipeline.core.errors import PolicyError
from pipeline.engines.oracle import ByteTokenizer
from pipeline.engines.vllm.detokenize import STOP_REASON, AnswerStop, completion_text, stop_at_answers
from pipeline.graders.math.extract import AnswerSeen
from tests.tiny.policy import ASSET

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


# The tiny policy's tokenizer, one of bytes like GPT-2's and Qwen's, and one with blanks in front of words and bytes for what it
# does not know, like Llama's. `test_vllm` does the same with vLLM's own class and the embedded model.
TEXTS = st.text(alphabet=st.sampled_from("ab 1.\n#é€漢😀"), max_size=12)


def of_bytes() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*alphabet, "Ġa", "Ġâ", "ab", "é", "Ċ1"]
    tokenizer = Tokenizer(models.WordLevel({piece: number for number, piece in enumerate(pieces)}, unk_token="a"))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    return tokenizer


def of_words() -> Tokenizer:
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "▁▁", "ab", "é", "漢"]
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken("<s>", special=True), AddedToken("</s>", special=True)])
    return tokenizer


TOKENIZERS = {"tiny": Tokenizer.from_file(str(ASSET / "tokenizer.json")), "bytes": of_bytes(), "words": of_words()}


def token_id(tokenizer: Tokenizer, piece: str) -> int:
    found = tokenizer.token_to_id(piece)
    assert found is not None
    return found


def decode_with(tokenizer: Tokenizer) -> Callable[[Sequence[int]], str]:
    return lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True))


def one_by_one(tokenizer: Tokenizer, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> str:
    stream = decoders.DecodeStream(ids=list(prompt_ids), skip_special_tokens=True)
    return "".join(stream.step(tokenizer, token) or "" for token in token_ids)


def byte_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Each byte a token, where the tokenizer has tokens of single bytes."""
    if tokenizer is TOKENIZERS["words"]:
        return [token_id(tokenizer, f"<0x{byte:02X}>") for byte in text.encode()]
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return [token_id(tokenizer, letter) for piece, _ in letters for letter in piece]


@pytest.mark.parametrize("name", ["bytes", "words"])
@given(prompt=TEXTS, text=TEXTS, cut=st.integers(0, 12), ends=st.booleans())
@example(prompt="a", text="😀", cut=1, ends=False)
@example(prompt="", text=" a", cut=0, ends=True)
@example(prompt="€111", text="1", cut=0, ends=False)
def test_characters_of_several_tokens_are_whole_or_left_out(
    name: str, prompt: str, text: str, cut: int, ends: bool
) -> None:
    tokenizer = TOKENIZERS[name]
    ids = byte_ids(tokenizer, text)
    ids = ids[: len(ids) - cut] + ([tokenizer.get_vocab_size() - 1] if ends else [])
    prompt_ids = byte_ids(tokenizer, prompt)
    made = completion_text(decode_with(tokenizer), prompt_ids, ids)
    assert made == one_by_one(tokenizer, prompt_ids, ids)
    assert made == text[: len(made)] or name == "words"  # without prompt tokens before it, the leading space is dropped
    assert cut or len(made) >= len(text) - 1


@pytest.mark.parametrize("name", ["tiny", "bytes"])
@given(data=st.data())
def test_any_tokens_behind_a_prompt_of_whole_characters(name: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[name]
    token = st.integers(0, tokenizer.get_vocab_size() - 1)
    whole = st.lists(token, max_size=8).filter(lambda ids: "\ufffd" not in tokenizer.decode(ids))
    prompt_ids, token_ids = data.draw(whole), data.draw(st.lists(token, max_size=12))
    made = completion_text(decode_with(tokenizer), prompt_ids, token_ids)
    assert made == one_by_one(tokenizer, prompt_ids, token_ids)


WORDS = TOKENIZERS["words"]
PIECES = st.one_of(
    st.integers(257, WORDS.get_vocab_size() - 1).map(lambda token: [token]),
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd").map(lambda letter: byte_ids(WORDS, letter)),
)
RUNS = st.lists(PIECES, max_size=8).map(lambda pieces: [token for piece in pieces for token in piece])


@given(prompt_ids=RUNS, token_ids=RUNS, cut=st.integers(0, 3))
def test_words_and_bytes_in_turn(prompt_ids: list[int], token_ids: list[int], cut: int) -> None:
    token_ids = token_ids[: len(token_ids) - cut]
    made = completion_text(decode_with(WORDS), prompt_ids, token_ids)
    assert made == one_by_one(WORDS, prompt_ids, token_ids)


def test_a_leading_blank_is_kept_behind_a_prompt() -> None:
    tokenizer = TOKENIZERS["words"]
    word = [token_id(tokenizer, "▁a")]
    assert tokenizer.decode(word) == "a"
    assert completion_text(decode_with(tokenizer), [token_id(tokenizer, "ab")], word) == " a"


def test_a_prompt_that_ends_within_a_character_takes_nothing_away() -> None:
    tokenizer = TOKENIZERS["bytes"]
    first, *rest = byte_ids(tokenizer, "éa")
    assert completion_text(decode_with(tokenizer), [first], rest).endswith("a")


def test_tokens_that_never_become_text_are_none() -> None:
    tokenizer = TOKENIZERS["bytes"]
    broken = byte_ids(tokenizer, "😀")[1]
    assert completion_text(decode_with(tokenizer), (), [broken] * 1000) == ""
