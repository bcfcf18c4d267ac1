"""Prompts contain the configured parts in order; prefixes extend the root; sampled chains are cut between their own tokens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from pipeline.config.choices import PromptStyle, Splitter
from pipeline.config.label import FewShotExample, PromptConfig
from pipeline.core.records import Prefix, Problem, Solution
from pipeline.data.prompts import Prompter, TokenCut, cut_on_tokens
from pipeline.data.steps import split
from pipeline.engines.embedded import embedded_model
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.oracle import ByteTokenizer
from tests import strategies as our
from tests.scorers.published import llama_tokenizer, mistral_tokenizer, qwen_tokenizer

PROBLEM = Problem(problem_id="p1", text="How many?", golds=("3",))
EXAMPLES = [
    FewShotExample(problem="One plus one?", solution="It is 2."),
    FewShotExample(problem="Two?", solution="Yes, 2."),
]
TEXT = "First  \nthen \t\n\nso 3. "


def prompter(config: PromptConfig | None = None, max_tokens: int = 10, max_model_len: int = 1000) -> Prompter:
    return Prompter(
        tokenizer=ByteTokenizer(), config=config or PromptConfig(), max_tokens=max_tokens, max_model_len=max_model_len
    )


def chain(text: str, ends: tuple[int, ...], problem_id: str = "p1") -> Solution:
    return Solution(chain_id="c", problem_id=problem_id, source_id=None, text=text, ends=ends)


def shown(prefix: Prefix) -> str:
    return ByteTokenizer().decode(prefix.prompt_ids)


def test_a_chat_prompt_ends_where_the_assistant_begins_to_speak() -> None:
    config = PromptConfig(system="Be brief.", instruction="Box it.", examples=EXAMPLES)
    assert shown(prompter(config).root(PROBLEM)) == (
        "system: Be brief.\nuser: One plus one?\nBox it.\nassistant: It is 2.\n"
        "user: Two?\nBox it.\nassistant: Yes, 2.\nuser: How many?\nBox it.\nassistant: "
    )


def test_a_plain_prompt_fills_the_template_for_every_example() -> None:
    config = PromptConfig(style=PromptStyle.plain, system="Sums.", template="Q: {problem}\nA: ", examples=EXAMPLES)
    text = "Sums.\n\nQ: One plus one?\nA: It is 2.\n\nQ: Two?\nA: Yes, 2.\n\nQ: How many?\nA: "
    assert shown(prompter(config).root(PROBLEM)) == text


def test_what_is_not_set_leaves_no_trace() -> None:
    assert shown(prompter().root(PROBLEM)) == "user: How many?\nassistant: "
    plain = PromptConfig(style=PromptStyle.plain, template="{problem}")
    assert shown(prompter(plain).root(PROBLEM)) == "How many?"


def test_a_problem_that_looks_like_a_template_stays_as_it_is() -> None:
    odd = Problem(problem_id="p", text="{problem} {0} %s", golds=("1",))
    plain = PromptConfig(style=PromptStyle.plain, template="{problem}|")
    assert shown(prompter(plain).root(odd)) == "{problem} {0} %s|"


class TwoVoices(ByteTokenizer):
    """Distinguishes a document's beginning (300) from a conversation (400) and from text that goes on."""

    def encode_plain(self, text: str) -> list[int]:
        return [300, *self.encode(text)]

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        return [400, *super().encode_chat(messages)]


@pytest.mark.parametrize(("style", "first"), [(PromptStyle.plain, 300), (PromptStyle.chat, 400)])
def test_special_tokens_stand_at_the_beginning_only(style: PromptStyle, first: int) -> None:
    maker = Prompter(tokenizer=TwoVoices(), config=PromptConfig(style=style), max_tokens=1, max_model_len=99)
    root = maker.root(PROBLEM)
    for prefix in [root, *maker.prefixes(root, chain("a\nb", (2, 3)))]:
        assert [token for token in prefix.prompt_ids if token > 255] == [first]
        assert prefix.prompt_ids[0] == first


@cache
def policies() -> list[tuple[PromptStyle, Any]]:
    chats = [AutoTokenizer.from_pretrained(embedded_model()), qwen_tokenizer(), llama_tokenizer()]
    return [
        *((PromptStyle.chat, each) for each in chats),
        *((PromptStyle.plain, each) for each in (*chats, mistral_tokenizer())),
    ]


@given(
    st.integers(0, 6), st.lists(st.sampled_from([*"12", "a", "|>", "<", "<|", "|im_end|>", "\n"]) | st.integers(0, 20))
)
def test_special_tokens_of_the_policy_in_problems_and_steps_stay_text(number: int, parts: list[str | int]) -> None:
    style, raw = policies()[number]
    special = {token for token, added in raw.added_tokens_decoder.items() if added.special}
    names = [str(raw.added_tokens_decoder[token]) for token in sorted(special)]
    text = "".join(part if isinstance(part, str) else names[part % len(names)] for part in ["7", *parts, ".", *names])
    config = PromptConfig(style=style, template=f"{names[-1]}{{problem}}{names[0]}")
    maker = Prompter(tokenizer=HfTokenizer(raw), config=config, max_tokens=9, max_model_len=99)

    def prompt(text: str) -> list[Prefix]:
        root = maker.root(replace(PROBLEM, text=text))
        return [root, *maker.prefixes(root, chain(text, (1, len(text))))]

    hostile, plain = prompt(text), prompt("7.")
    for found, usual in zip(hostile, plain, strict=True):
        assert [token for token in found.prompt_ids if token in special] == [
            token for token in usual.prompt_ids if token in special
        ]
    assert raw.decode(hostile[0].prompt_ids).count(text) == 1
    assert raw.decode(hostile[-1].prompt_ids).count(text) == 2


def test_blanks_behind_the_last_step_go_and_newlines_stay() -> None:
    maker = prompter()
    root = maker.root(PROBLEM)
    ends = (TEXT.index("then"), TEXT.index("so"), len(TEXT))
    prefixes = maker.prefixes(root, chain(TEXT, ends))
    said = [shown(prefix).removeprefix(shown(root)) for prefix in prefixes]
    assert said == ["First  \n", "First  \nthen \t\n\n", "First  \nthen \t\n\nso 3."]
    assert [prefix.text for prefix in prefixes] == said
    (blank_end,) = maker.prefixes(root, chain("a. \t b", (4, 6)))[:1]
    assert shown(blank_end).endswith("assistant: a.")


@given(our.texts)
def test_every_prefix_continues_the_root_and_the_last_is_the_chain(text: str) -> None:
    maker = prompter()
    root = maker.root(PROBLEM)
    ends = split(text, Splitter.newline)
    prefixes = maker.prefixes(root, chain(text, ends))
    assert [prefix.step_index for prefix in prefixes] == list(range(1, len(ends) + 1))
    for shorter, longer in pairwise([root, *prefixes]):
        assert longer.prompt_ids[: len(root.prompt_ids)] == root.prompt_ids
        assert longer.text.startswith(shorter.text)
        assert longer.prefix_id != shorter.prefix_id
    if prefixes:
        assert prefixes[-1].text == text.rstrip(" \t")


def test_equal_prefixes_are_shared_within_a_problem_only() -> None:
    maker = prompter()
    other = Problem(problem_id="p2", text=PROBLEM.text, golds=("3",))
    root, other_root = maker.root(PROBLEM), maker.root(other)
    left = maker.prefixes(root, chain("a\nb\nc", (2, 4, 5)))
    right = maker.prefixes(root, chain("a\nb\nd", (2, 4, 5)))
    coarse = maker.prefixes(root, chain("a\nb\nd", (4, 5)))
    elsewhere = maker.prefixes(other_root, chain("a\nb\nc", (2, 4, 5), "p2"))
    assert [one.prefix_id == two.prefix_id for one, two in zip(left, right, strict=True)] == [True, True, False]
    assert coarse[0].prefix_id == right[1].prefix_id
    assert not {prefix.prefix_id for prefix in (root, *left)} & {
        prefix.prefix_id for prefix in (other_root, *elsewhere)
    }


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 100))
def test_a_prefix_fits_up_to_the_last_token(n_prompt: int, max_tokens: int, max_model_len: int) -> None:
    prefix = Prefix(prefix_id="x", step_index=0, text="", prompt_ids=(7,) * n_prompt)
    fits = prompter(max_tokens=max_tokens, max_model_len=max_model_len).fits(prefix)
    assert fits == (max_model_len - n_prompt >= max_tokens)


def check_cut(cut: TokenCut, text: str, ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> None:
    """The properties of a cut for any tokens: lossless, increasing, without blank steps, on token boundaries."""
    assert len(cut.ends) == len(cut.token_ends)
    if not text.strip():
        assert cut.ends == ()
        return
    assert cut.ends[-1] == len(text)
    assert cut.token_ends[-1] == len(ids)
    assert all(left < right for left, right in pairwise((0, *cut.ends)))
    assert all(left < right for left, right in pairwise((0, *cut.token_ends)))
    slices = [text[start:end] for start, end in pairwise((0, *cut.ends))]
    assert "".join(slices) == text
    assert all(part.strip() for part in slices)
    for end, token_end in zip(cut.ends, cut.token_ends, strict=True):
        assert decode(ids[:token_end]) == text[:end]


@given(our.tokenised(), st.sampled_from([Splitter.newline, Splitter.sentence, Splitter.step_label]))
@example(["a\nb", " \n", "c"], Splitter.newline)
@example(["a", "\nb\n", "c"], Splitter.newline)
@example(["a\nb\nc"], Splitter.newline)
def test_sampled_chains_are_cut_on_tokens_of_any_length(tokens: list[str], splitter: Splitter) -> None:
    text = "".join(tokens)

    def decode(ids: Sequence[int]) -> str:
        return "".join(tokens[index] for index in ids)

    ends = split(text, splitter)
    ids = range(len(tokens))
    cut = cut_on_tokens(text, ends, ids, decode)
    check_cut(cut, text, ids, decode)
    # A cut holds the step's words, and of the next step's only what one token holds of both.
    bounds = [len(decode(ids[:n])) for n in range(len(ids) + 1)]
    wanted = set()
    for end in ends:
        words = len(text[:end].rstrip())
        inside = [bound for bound in bounds if words <= bound <= end]
        wanted.add(max(inside) if inside else min(bound for bound in bounds if bound >= words))
    assert set(cut.ends) <= wanted | {len(text)}


class EndOfTurnTokenizer(ByteTokenizer):
    """Bytes, and a token without text that ends the turn, as chat models have."""

    END = 256

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode([token for token in ids if token != self.END])


def test_the_end_of_the_turn_is_no_part_of_a_sampled_chain() -> None:
    tokenizer = EndOfTurnTokenizer()
    text = "3 + 4 = 7.\nSo 7."
    ids = [*tokenizer.encode(text), tokenizer.END]
    cut = cut_on_tokens(text, split(text, Splitter.newline), ids, tokenizer.decode)
    assert [tokenizer.decode(ids[:end]) for end in cut.token_ends] == ["3 + 4 = 7.\n", text]
    assert cut.token_ends[-1] == len(ids) - 1


def test_the_next_steps_first_word_stays_out_of_a_sampled_prefix() -> None:
    tokens = ["It", " costs", " 3.", " So", " 4", " do", "."]

    def decode(ids: Sequence[int]) -> str:
        return "".join(tokens[index] for index in ids)

    text = "".join(tokens)
    ends = split(text, Splitter.sentence)
    cut = cut_on_tokens(text, ends, range(len(tokens)), decode)
    assert [decode(range(end)) for end in cut.token_ends] == ["It costs 3.", text]


@given(our.texts.filter(str.strip), st.sampled_from([Splitter.newline, Splitter.sentence, Splitter.regex]))
@example("ки ки\nяб", Splitter.newline)
@example("完。了。😀", Splitter.sentence)
def test_characters_of_several_tokens_are_never_cut_apart(text: str, splitter: Splitter) -> None:
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode(text)
    ends = split(text, splitter, "[。é]|ки")
    cut = cut_on_tokens(text, ends, ids, tokenizer.decode)
    check_cut(cut, text, ids, tokenizer.decode)
    # One token per byte: every step end is a token's end, so none needs to move.
    assert cut.ends == ends
    assert [bytes(ids[:n]).decode() for n in cut.token_ends] == [text[:end] for end in ends]


@given(our.byte_tokens(), st.sampled_from([Splitter.newline, Splitter.sentence, Splitter.regex]))
@example([b"a\n\xf0\x9f", b"\x98\x80\nb"], Splitter.newline)
def test_tokens_that_hold_parts_of_characters_are_cut_where_text_is_whole(
    tokens: list[bytes], splitter: Splitter
) -> None:
    def decode(ids: Sequence[int]) -> str:
        return b"".join(tokens[index] for index in ids).decode("utf-8", "replace")

    ids = range(len(tokens))
    text = decode(ids)
    cut = cut_on_tokens(text, split(text, splitter, "[。é]|ки"), ids, decode)
    check_cut(cut, text, ids, decode)
    for end, token_end in zip(cut.ends, cut.token_ends, strict=True):
        assert b"".join(tokens[:token_end]) == text[:end].encode()


@given(st.lists(st.sampled_from([*b"\n\n.a", 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0xFF]), max_size=40))
def test_bytes_that_are_no_text_are_cut_as_they_decode(ids: list[int]) -> None:
    decode = ByteTokenizer().decode
    text = decode(ids)
    check_cut(cut_on_tokens(text, split(text, Splitter.newline), ids, decode), text, ids, decode)


@given(our.texts.filter(str.strip))
def test_prompts_of_a_sampled_chain_are_its_own_tokens(text: str) -> None:
    tokenizer = ByteTokenizer()
    ids = tuple(tokenizer.encode(text))
    cut = cut_on_tokens(text, split(text, Splitter.newline), ids, tokenizer.decode)
    solution = Solution(
        chain_id="c",
        problem_id="p1",
        source_id=None,
        text=text,
        ends=cut.ends,
        token_ids=ids,
        token_ends=cut.token_ends,
    )
    maker = prompter()
    root = maker.root(PROBLEM)
    prefixes = maker.prefixes(root, solution)
    assert [prefix.prompt_ids for prefix in prefixes] == [root.prompt_ids + ids[:end] for end in cut.token_ends]
    assert [prefix.text for prefix in prefixes] == [text[:end] for end in cut.ends]
    assert prefixes[-1].prompt_ids == root.prompt_ids + ids
