import tempfile
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from tests.graders.flood import NEEDS_ALGEBRA, flood
from tests.graders.hostile import GOLDS, LONG_CHARS, Hostile, hostile_answers

pytestmark = pytest.mark.slow

ANSWERS = 250
SEED = 20
MARKERS = (
    "\\boxed{", "}", "#### ", "The answer is ", "**", "$", "\\fbox", "<think>", "</think>", "\n", "ки", "Answer: ",
)  # fmt: skip


def test_a_flood_gets_verdicts_and_leaves_nothing(
    checker: Checker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    wake = flood(checker, hostile_answers(ANSWERS, SEED), ANSWERS)
    assert wake.answers == ANSWERS
    assert Verdict.CORRECT not in wake.verdicts
    assert wake.verdicts[Verdict.OVER_LIMIT] > 0
    assert wake.stuck == 0
    assert {usage.files for usage in wake.usage} == {0}
    assert wake.usage[0].descriptors == wake.usage[-1].descriptors


def test_a_flood_outlives_its_processes(checker: Checker) -> None:
    killed: list[int] = []

    def killing() -> Iterator[Hostile]:
        for number, hostile in enumerate(hostile_answers(60, SEED + 1)):
            if number % 20 == 0:
                # Something that makes the checker start a process, if it has none.
                gold, answer, wanted = NEEDS_ALGEBRA[0]
                assert checker.grade_answer((gold,), answer).verdict is wanted
            if number % 20 == 10:
                for child in psutil.Process().children():
                    # Not Python's own tracker of shared memory, which later tests of this process need.
                    if b"resource_tracker" not in Path(f"/proc/{child.pid}/cmdline").read_bytes():
                        child.kill()
                        killed.append(child.pid)
            yield hostile

    wake = flood(checker, killing(), 60)
    assert wake.answers == 60
    assert Verdict.CORRECT not in wake.verdicts
    assert killed
    assert wake.stuck == 0


def test_long_answers_are_not_kept(checker: Checker) -> None:
    tracemalloc.start()
    try:
        for number in range(20):
            assert checker.grade_answer(("7919",), f"{number}" * LONG_CHARS).verdict is Verdict.OVER_LIMIT
        assert tracemalloc.get_traced_memory()[0] < LONG_CHARS
    finally:
        tracemalloc.stop()


def test_the_generator_makes_what_it_promises() -> None:
    answers = list(hostile_answers(5_000, SEED))
    assert answers == list(hostile_answers(5_000, SEED))
    assert answers[:50] != list(islice(hostile_answers(5_000, SEED + 1), 50))
    assert len({hostile.kind for hostile in answers}) > 15
    assert max(len(hostile.answer) for hostile in answers) == LONG_CHARS
    assert not {hostile.answer for hostile in answers} & set(GOLDS)


ANY_CHARACTER = st.characters(exclude_categories=())
HOSTILE_TEXTS = st.integers(0, 10**9).map(lambda seed: next(hostile_answers(1, seed)).answer)
TEXTS = st.one_of(
    st.text(ANY_CHARACTER),
    HOSTILE_TEXTS,
    st.lists(st.one_of(st.sampled_from(MARKERS), st.text(ANY_CHARACTER, max_size=8)), max_size=12).map("".join),
    st.tuples(st.sampled_from(MARKERS), HOSTILE_TEXTS).map("".join),
)


@given(TEXTS, st.sampled_from(GOLDS), st.booleans())
def test_what_is_decided_at_once_never_raises(checker: Checker, text: str, gold: str, complete: bool) -> None:
    answer = checker.final_answer(text, complete=complete)
    assert answer is None or len(answer) <= len(text)
    for grade in (checker.quick((gold,), text, complete=complete), checker.quick_answer((gold,), text)):
        assert grade is None or grade.verdict in Verdict
