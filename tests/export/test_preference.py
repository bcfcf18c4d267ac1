"""Pairs are made exactly where prefixes branch, with the better step first."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.export.formats.base import Row
from pipeline.export.formats.pairs import pair_token_errors
from pipeline.export.formats.preference import pair_errors, pair_row
from pipeline.export.settings import PairReader, PairSpan, PreferenceConfig
from pipeline.export.targets import LabelRow
from tests.export.encoders import Characters
from tests.export.rows import label_row, pairs_of

SEPARATOR = "\n"


def chain(steps: str, labels: Sequence[int | None], scores: Sequence[float | None] = (), **changes: Any) -> LabelRow:
    """A chain with one letter per step. It shares prefixes with chains that begin with the same letters."""
    usual: dict[str, Any] = {
        "chain_id": steps,
        "problem": "Q?",
        "gold_answer": "5",
        "outcome": labels[-1] == 1,
        "steps": list(steps),
        "root_prefix_id": "root",
        "prefix_ids": [*accumulate(steps)],
        "value": scores or [{1: 0.9, 0: 0.0, 2: 0.5, None: None}[label] for label in labels],
        "origin": ["measured"] * len(labels),
        "n_rollouts": [20] * len(labels),
    }
    return label_row(labels, **usual | changes)


def texts(chains: Sequence[LabelRow], **settings: Any) -> list[tuple[str, str, str]]:
    config = PreferenceConfig(**{"span": PairSpan.step, **settings})
    return [
        (str(found["prompt"]), str(found["chosen"]), str(found["rejected"]))
        for pair in pairs_of(chains, config)
        for found in [pair_row(pair, PairReader.trl, SEPARATOR)]
    ]


def test_a_pair_stands_where_two_chains_part() -> None:
    chains = [chain("abc", [1, 1, 1]), chain("abd", [1, 1, 0])]
    assert texts(chains) == [("Q?\na\nb\n", "c", "d")]


def test_chains_may_part_at_the_problem_itself() -> None:
    assert texts([chain("ab", [1, 1]), chain("cb", [0, 0])]) == [("Q?\n", "a", "c")]


def test_what_is_uncertain_or_neutral_is_in_no_pair_but_by_its_value() -> None:
    chains = [chain("a", [1]), chain("b", [2], [0.5]), chain("c", [None], [0.1])]
    assert texts(chains) == []
    assert texts(chains, margin=0.4) == [("Q?\n", "a", "c"), ("Q?\n", "a", "b"), ("Q?\n", "b", "c")]
    assert texts(chains, margin=0.5) == [("Q?\n", "a", "c")]


def test_a_margin_is_met_whatever_rounding_does() -> None:
    chains = [chain("a", [1], [0.7]), chain("b", [1], [0.2])]
    assert 0.7 - 0.2 < 0.5
    assert len(texts(chains, margin=0.5)) == 1


def test_values_that_contradict_the_labels_make_no_pair() -> None:
    assert texts([chain("a", [1], [0.2]), chain("b", [0], [0.3])]) == []


def test_a_label_without_a_value_is_enough() -> None:
    assert texts([chain("a", [1], [None]), chain("b", [0], [0.3])]) == [("Q?\n", "a", "b")]


def test_the_largest_differences_come_first_and_a_branch_has_a_limited_number_of_pairs() -> None:
    chains = [
        chain(f"{name}", [int(value > 0.5)], [value]) for name, value in zip("abcd", (0.6, 0.9, 0.3, 0.1), strict=True)
    ]
    assert [found[1:] for found in texts(chains)] == [("b", "d"), ("b", "c"), ("a", "d"), ("a", "c")]
    assert [found[1:] for found in texts(chains, pairs_per_branch=2)] == [("b", "d"), ("b", "c")]


def test_steps_that_read_alike_are_no_alternative_to_each_other() -> None:
    twice = chain("a", [0], chain_id="other", prefix_ids=["other tokens"])
    assert texts([chain("a", [1]), twice], margin=0.1) == []
    below = [chain("ab", [1, 1]), chain("ac", [1, 0])]
    again = [chain("ab", [1, 1], prefix_ids=["x", "xb"]), chain("ac", [1, 0], prefix_ids=["x", "xc"])]
    assert texts([*below, *again]) == [("Q?\na\n", "b", "c")], "the same three texts are written once"


def test_the_rest_belongs_to_a_chain_that_ends_as_the_step_says() -> None:
    chains = [
        chain("axy", [1, 0, 0], outcome=False),
        chain("abc", [1, 1, 1]),
        chain("dxy", [0, 1, 1], outcome=True),
        chain("def", [0, 0, 0], outcome=None),
    ]
    assert texts(chains, span=PairSpan.rest) == [("Q?\na\n", "b\nc", "x\ny")], "no wrong chain goes on from d"
    wrong = chain("dgh", [0, 0, 0])
    assert ("Q?\n", "a\nb\nc", "d\ng\nh") in texts([*chains, wrong], span=PairSpan.rest)


def test_each_reader_gets_what_it_joins_itself() -> None:
    chains = [chain("abc", [1, 1, 1]), chain("abde", [1, 1, 0, 0])]
    (trl,) = pairs_of(chains, PreferenceConfig())
    assert pair_row(trl, PairReader.trl, SEPARATOR) == {
        "prompt": "Q?\na\nb\n",
        "problem": "Q?",
        "chosen": "c",
        "rejected": "d\ne",
        "answer": "5",
        "chosen_value": 0.9,
        "rejected_value": 0.0,
        "step": 3,
        "problem_id": "p",
        "prefix_id": "ab",
        "chosen_chain_id": "abc",
        "rejected_chain_id": "abde",
    }
    (step_dpo,) = pairs_of(chains, PreferenceConfig(reader=PairReader.step_dpo))
    found = pair_row(step_dpo, PairReader.step_dpo, SEPARATOR)
    assert (found["prompt"], found["initial_reason_steps"], found["rejected"]) == ("Q?", "a\nb\n", "d")
    assert "problem" not in found


def test_a_separator_within_a_step_is_reported() -> None:
    clean, mixed = chain("ab", [1, 1]), chain("ac", [1, 0])._replace(steps=["a", "c\nd"])
    (pair,) = pairs_of([clean, mixed], PreferenceConfig())
    (offence,) = pair_errors(pair, SEPARATOR)
    assert offence.detail == r"step 2 of the rejected chain contains the separator '\n'"
    assert not list(pair_errors(pair, "\n\n"))


def test_what_the_trainer_cuts_is_reported() -> None:
    found: Row = {"prompt": "Q?\n", "chosen": "ab", "rejected": "c"}
    assert not list(pair_token_errors(found, Characters(bos=1), 7))
    (offence,) = pair_token_errors(found, Characters(bos=1), 6)
    assert (offence.kind, offence.fatal) == ("too_long", False)
    assert "prompt and chosen have 7 tokens" in offence.detail
    assert not list(pair_token_errors(found, Characters(), 6))
    assert not list(pair_token_errors(found, Characters(bos=1), None))


def test_a_prompt_whose_tokens_change_with_what_follows_is_reported() -> None:
    (offence,) = pair_token_errors({"prompt": "Q?a", "chosen": "bc", "rejected": "c"}, Characters(merged="ab"), None)
    assert (offence.kind, offence.fatal) == ("boundary", True)
    assert "when chosen follows" in offence.detail


CHAINS = st.lists(
    st.tuples(
        st.text("ab", min_size=1, max_size=4), st.lists(st.sampled_from([0.0, 0.3, 0.8, None]), min_size=4, max_size=4)
    ),
    max_size=6,
)


@given(CHAINS, st.integers(1, 3), st.sampled_from([0.0, 0.4]))
def test_every_pair_is_one_of_siblings(drawn: list[tuple[str, list[float | None]]], most: int, margin: float) -> None:
    chains = [
        chain(
            steps, [None if value is None else int(value > 0.5) for value in values[: len(steps)]], values[: len(steps)]
        )
        for steps, values in drawn
    ]
    config = PreferenceConfig(pairs_per_branch=most, margin=margin, span=PairSpan.step)
    found = pairs_of(chains, config)
    branches: dict[str, int] = {}
    for pair in found:
        good, bad = pair.chosen, pair.rejected
        assert good.index == bad.index
        assert good.chain.steps[: good.index] == bad.chain.steps[: bad.index]
        assert good.text != bad.text
        assert good.score is not None
        assert bad.score is not None
        assert good.score - bad.score >= margin
        assert good.score > bad.score
        branches[good.prefix_id] = branches.get(good.prefix_id, 0) + 1
    assert all(count <= most for count in branches.values())
    written = [
        tuple(pair_row(pair, PairReader.trl, SEPARATOR)[name] for name in ("prompt", "chosen", "rejected"))
        for pair in found
    ]
    assert len(set(written)) == len(written)
