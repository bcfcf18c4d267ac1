"""Hypothesis strategies for texts, rows, rollouts and counts, shared by the tests."""

from itertools import pairwise

from hypothesis import strategies as st

from pipeline.core.ids import rollout_id
from pipeline.core.records import Finish, InputRow, Problem, Rollout, RowLocation, Solution, Verdict

FORMULAS = (
    "$x$",
    "$5 + x$",
    "$a\nb$",
    "$$x = 1.\ny = 2$$",
    "\\(a.\nStep 2: b\\)",
    "\\[\n\nx ки\n\n\\]",
    "\\begin{align}\nx &= 1. \\\\[2pt]\n\\begin{array}{c}1\n\\end{array}\n\\end{align}",
    "[asy]\ndraw(a. B); // Step 2: $c\n\n[/asy]",
)
"""Each holds a place where some splitter would cut, were it not a formula."""

PROSE = (
    "So it is 5. ",
    "He pays. ",
    "Step 2: add.\n",
    "\n\n",
    "\n",
    " ки\n",
    "e.g. ",
    "1. ",
    " ",
    "Why? ",
    "яблоки ",
    "\r\n",
)

texts = st.text(alphabet="aS .!?$\\[](){}\n\rки15é", max_size=200) | st.lists(
    st.sampled_from(
        (
            *PROSE,
            *FORMULAS,
            "$",
            "$$",
            "$5",
            "\\[",
            "\\(",
            "\\)",
            "\\]",
            "\\begin{a}",
            "\\end{a}",
            "\\$",
            "\\\\",
            "Step 1: ",
            *("\n```", "\n~~~\n", "```py\n", "[asy]", "[/asy]", "| a. B | $c\n", "|-|-|\n"),
        )
    ),
    max_size=30,
).map("".join)
"""Anything, with everything that means something to a splitter over-represented."""

pieces = st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=20).map(
    lambda picks: [(f, FORMULAS[i % len(FORMULAS)] if f else PROSE[i % len(PROSE)]) for f, i in picks]
)
"""Prose without a dollar or bracket, and whole formulas (marked True): it is known where the formulas are."""

step_lists = st.lists(st.text(min_size=1, max_size=20).filter(lambda step: bool(step.strip())), min_size=1, max_size=10)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)

_NAMES = ("id", "problem", "answer", "steps", "solution", "question", "label", "input", "final_answer_correct")
rows = st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=5), json_values, max_size=8)
"""Rows whose columns often have the expected names and seldom the expected values."""

hex_ids = st.text(alphabet="0123456789abcdef", min_size=20, max_size=20)

any_text = st.text(alphabet=st.characters(), max_size=30)
"""Every character there is, lone surrogates among them: what a model may write."""

clean_text = st.text(max_size=30)
"""Text that UTF-8 can hold: what intake lets through."""


@st.composite
def input_rows(draw: st.DrawFn) -> InputRow:
    """A used row, with a chain or without."""
    source_id = draw(st.none() | clean_text)
    problem = Problem(
        problem_id=draw(hex_ids), text=draw(clean_text), golds=tuple(draw(st.lists(clean_text, min_size=1, max_size=3)))
    )
    solution = Solution(
        chain_id=draw(hex_ids),
        problem_id=problem.problem_id,
        source_id=source_id,
        text=draw(clean_text),
        ends=tuple(draw(st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=4))),
    )
    return InputRow(
        location=RowLocation(file=draw(clean_text), line=draw(st.integers(1, 2**62))),
        source_id=source_id,
        problem=problem,
        solution=draw(st.sampled_from([solution, None])),
        given_outcome=draw(st.sampled_from([None, True, False])),
    )


@st.composite
def rollouts(draw: st.DrawFn) -> Rollout:
    """A finished completion with any text and any verdict."""
    prefix_id, issue_index = draw(hex_ids), draw(st.integers(0, 99_999))
    return Rollout(
        rollout_id=rollout_id(prefix_id, issue_index),
        prefix_id=prefix_id,
        problem_id=draw(hex_ids),
        step_index=draw(st.integers(0, 9_999)),
        issue_index=issue_index,
        round=draw(st.integers(0, 9_999)),
        reached_prefix_id=draw(st.none() | hex_ids),
        text=draw(any_text),
        finish=draw(st.sampled_from(Finish)),
        n_tokens=draw(st.integers(0, 2**20)),
        answer=draw(any_text),
        verdict=draw(st.sampled_from(Verdict)),
        grader="g1",
    )


@st.composite
def tokenised(draw: st.DrawFn) -> list[str]:
    """A text as a list of tokens of any length, so that tokens straddle every boundary."""
    text = draw(texts)
    cuts = draw(st.sets(st.integers(1, len(text) - 1), max_size=30)) if len(text) > 1 else set()
    bounds = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


@st.composite
def byte_tokens(draw: st.DrawFn) -> list[bytes]:
    """A text with long characters as tokens of any number of bytes, so that tokens end inside characters."""
    data = draw(st.text(alphabet="a .\nкиé。😀", max_size=40)).encode()
    cuts = draw(st.sets(st.integers(1, len(data) - 1), max_size=30)) if len(data) > 1 else set()
    bounds = [0, *sorted(cuts), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
"""(successes, trials)."""

identities = st.dictionaries(
    st.text(max_size=10),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | clean_text
    | st.lists(clean_text, max_size=3),
    max_size=6,
)
"""Flat settings as a run records them."""
