"""A problem is found by a run of `ngram` words in any layout, but not by fewer words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import RowLocation
from pipeline.export.decontaminate import Contamination, Listed, words

LONG = "A farmer has $1{,}200$ sheep, sells \\dfrac{1}{3} of them and buys 45 more. How many sheep has he now?"


def index(*problems: str, ngram: int = 13) -> Contamination:
    listed = [
        Listed(problem=text, location=RowLocation(file="f", line=line)) for line, text in enumerate(problems, start=1)
    ]
    return Contamination(listed, ngram)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How many? $3x$", "how many 3 x"),
        (r"$\frac{1}{2}$ and $\dfrac{1}{2}$", "frac 1 2 and frac 1 2"),
        (r"$\frac12$, $\tfrac 34$, $\frac{12}{5}$", "frac 1 2 frac 3 4 frac 12 5"),
        (r"\left( x_1^2 \right) \text{ cm}", "x 1 2 cm"),
        (r"\leftarrow y \textwidth", "leftarrow y textwidth"),
        ("1,000 or 1{,}000 or $1\\,000$ but 1,00 and 3.5", "1000 or 1000 or 1000 but 1 00 and 3.5"),
        ("小明有3个苹果", "小 明 有 3 个 苹 果"),
        ("ÉTÉ isn't_it", "été isn t it"),
        ("?! $+$", ""),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert " ".join(words(text)) == expected


def test_the_match_names_the_listed_problem_and_the_shared_words() -> None:
    listed = index("Something else.", LONG)
    twelve = "Listen! A FARMER has 1,200 sheep; sells $\\tfrac13$ of them and"
    assert listed.contaminated_by(f"{twelve} goes home.") is None
    match = listed.contaminated_by(f"{twelve} buys shoes.")
    assert match is not None
    assert match.listed.location == RowLocation(file="f", line=2)
    assert match.words == "a farmer has 1200 sheep sells frac 1 3 of them and buys"


def test_short_problems_match_as_a_whole_with_their_signs() -> None:
    listed = index("What is $3 \u00d7 5$?", "?")
    match = listed.contaminated_by("what is 3*5")
    assert match is not None
    assert match.words == "what is 3 5"
    for other in ("What is 3 + 5?", "What is 3 * 5 now?", "?", ""):
        assert listed.contaminated_by(other) is None


def test_a_short_problem_within_a_long_one_is_not_caught() -> None:
    assert index("What is 3 * 5?").contaminated_by(f"{LONG} What is 3 * 5?") is None


WORDS = st.lists(st.sampled_from(["a", "b", "7"]), max_size=12)


@given(st.lists(WORDS, max_size=3), WORDS, st.integers(1, 5))
def test_a_match_is_a_shared_run_of_words(listed: list[list[str]], problem: list[str], ngram: int) -> None:
    def runs(text: list[str]) -> set[tuple[str, ...]]:
        return {tuple(text[start : start + ngram]) for start in range(len(text) - ngram + 1)}

    shared = any(runs(text) & runs(problem) for text in listed) or (0 < len(problem) < ngram and problem in listed)
    match = index(*map(" ".join, listed), ngram=ngram).contaminated_by(" ".join(problem))
    assert (match is not None) == shared
    if match is not None:
        assert match.words in " ".join(problem)
        assert match.words in match.listed.problem
