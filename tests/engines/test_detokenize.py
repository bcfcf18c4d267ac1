"""A completion's text equals what the incremental detokenizer that vLLM uses makes of its tokens one by one.

The tokenizers are the tiny policy's, one of bytes like GPT-2's and Qwen's, and one with blanks in front of words and bytes
for what it does not know, like Llama's. `test_vllm` does the same with vLLM's own class and the embedded model.
"""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from pipeline.engines.vllm.detokenize import completion_text
from tests.tiny.policy import ASSET

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


def test_the_tiny_policy_writes_what_it_reads() -> None:
    tokenizer = TOKENIZERS["tiny"]
    ids = tokenizer.encode("12*3=36\n#36", add_special_tokens=False).ids
    assert completion_text(decode_with(tokenizer), ids[:3], ids[3:]) == "3=36\n#36"
