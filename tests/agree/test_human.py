"""Human labels are read from every layout; an unusable row gives its reason and place; chains match by their texts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.human import (
    NO_ERROR,
    HumanChain,
    MiscountedRow,
    Unusable,
    first_error,
    goods_until,
    human_chains,
    match,
    original_chains,
    subsets,
)
from pipeline.analysis.settings import Neutral
from pipeline.config.choices import Layout
from pipeline.config.label import Columns, DataConfig
from pipeline.core.records import InputRow, Reject, RejectReason, RowLocation
from pipeline.data.layouts import MAX_SUBSETS
from pipeline.data.problems import read_row
from pipeline.data.rows import read_rows
from pipeline.data.steps import step_texts
from tests.agree.pairs import human, labelled, pair
from tests.conftest import SHARED_DATA

PLACE = RowLocation(file="people.jsonl", line=7)
PROCESSBENCH = SHARED_DATA / "processbench_dev.jsonl"


def read(
    row: dict[str, Any] | Reject,
    layout: Layout = Layout.processbench,
    *,
    name: str | None = None,
    neutral: Neutral = Neutral.good,
    columns: Columns | None = None,
) -> HumanChain | Unusable:
    data = DataConfig(layout=layout, columns=columns or Columns())
    (found,) = human_chains([(PLACE, row)], data, name, neutral)
    return found


def chain(row: dict[str, Any], layout: Layout = Layout.processbench, **more: Any) -> HumanChain:
    found = read(row, layout, **more)
    assert isinstance(found, HumanChain), found
    return found


def why_not(row: dict[str, Any] | Reject, layout: Layout = Layout.processbench, **more: Any) -> str:
    found = read(row, layout, **more)
    assert isinstance(found, Unusable), found
    assert found.location == PLACE
    return found.detail


def processbench(label: object, column: str = "label") -> dict[str, Any]:
    return {"id": "gsm8k-7", "problem": "What?", "steps": [f" step {n}\n" for n in range(3)], column: label}


@pytest.mark.parametrize("column", ["label", "first_error"])
@pytest.mark.parametrize(
    ("label", "goods"),
    [(-1, (True, True, True)), (0, (False, None, None)), (2, (True, True, False)), (2.0, (True, True, False))],
)
def test_a_first_error_makes_the_steps_before_it_good_and_those_behind_it_unknown(
    column: str, label: float, goods: tuple[bool | None, ...]
) -> None:
    found = chain(processbench(label, column))
    assert (found.goods, found.first_error) == (goods, int(label))
    assert (found.source_id, found.problem, found.steps) == ("gsm8k-7", "What?", ("step 0", "step 1", "step 2"))


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(-1, n - 1))))
def test_where_the_first_error_is_can_be_reported_from_what_it_says(case: tuple[int, int]) -> None:
    n_steps, error = case
    goods = goods_until(error, n_steps)
    assert len(goods) == n_steps
    assert first_error(goods) == error
    assert goods.count(False) == (error != NO_ERROR)


@pytest.mark.parametrize("label", [3, -2, 1.5, float("inf"), True, "1", {}, float("nan"), None])
def test_a_label_that_names_no_step_is_unusable(label: object) -> None:
    assert "label" in why_not(processbench(label))


def test_a_file_without_labels_is_reported_which_columns_it_has() -> None:
    assert "'label' or 'first_error'; its columns are: id, problem, steps, verdict" in why_not(
        processbench(1, "verdict")
    )
    assert chain(processbench(1, "verdict"), name="verdict").first_error == 1
    assert "in 'truth'" in why_not(processbench(1), name="truth")


def test_no_answer_is_needed_and_none_is_read() -> None:
    without = chain(processbench(1))
    assert chain({**processbench(1), "answer": {"what": "ever"}}) == without
    assert chain(processbench(1), Layout.rows, columns=Columns(answer="")) == without


def test_a_solution_as_text_is_cut_as_label_cuts_it() -> None:
    row = {"problem": "What?", "solution": "one\n\ntwo\nthree", "label": 1}
    assert chain(row, Layout.rows).steps == ("one", "two", "three")
    assert "no chain" in why_not({"problem": "What?", "label": 1}, Layout.rows)


def test_rows_that_could_not_be_read_stay_unusable() -> None:
    assert why_not(Reject(location=PLACE, reason=RejectReason.NOT_JSON, detail="no JSON")) == "no JSON"
    assert "blank" in why_not({**processbench(1), "steps": ["a", " "]})


def prm800k(*ratings: object) -> dict[str, Any]:
    steps = [
        {"completions": [{"text": "other", "rating": -1}, {"text": f"s{n}", "rating": rating}], "chosen_completion": 1}
        for n, rating in enumerate(ratings)
    ]
    return {"question": {"problem": "q", "ground_truth_answer": "5"}, "label": {"steps": steps}}


@pytest.mark.parametrize(
    ("neutral", "goods", "error"),
    [
        (Neutral.good, (True, True, False, True), 2),
        (Neutral.bad, (True, False, False, True), 1),
        (Neutral.ignored, (True, None, False, True), None),
    ],
)
def test_prm800k_has_a_rating_for_each_chosen_completion(
    neutral: Neutral, goods: tuple[bool | None, ...], error: int | None
) -> None:
    found = chain(prm800k(1, 0, -1, 1), Layout.prm800k, neutral=neutral)
    assert (found.goods, found.first_error) == (goods, error)
    assert found.steps == ("s0", "s1", "s2", "s3")


def test_prm800k_ends_at_the_error_and_a_persons_own_step_is_unrated() -> None:
    row = prm800k(1, 1, 1)
    row["label"]["steps"][1] = {"completions": None, "human_completion": {"text": "mine"}, "chosen_completion": None}
    row["label"]["steps"][2] = {"completions": [{"text": "wrong", "rating": -1}], "chosen_completion": None}
    found = chain(row, Layout.prm800k)
    assert (found.steps, found.goods, found.first_error) == (("s0", "mine", "wrong"), (True, None, False), None)


@pytest.mark.parametrize(("said", "outcome"), [(True, True), (False, False), (None, None), ("yes", None)])
def test_processbench_says_whether_the_final_answer_is_correct(said: object, outcome: bool | None) -> None:
    assert chain({**processbench(1), "final_answer_correct": said}).outcome is outcome
    assert chain(processbench(1)).outcome is None


MODIFIED = Columns(id="idx", problem="modified_question", steps="modified_process")
ORIGINAL = Columns(id="idx", problem="original_question", steps="original_process")


def prmbench(error_steps: object, **more: object) -> dict[str, Any]:
    return {
        "idx": "circular_prm_test_p1_0",
        "original_question": "What?",
        "modified_question": "What now?",
        "original_process": ["one", "two"],
        "modified_process": ["one", "2", "three"],
        "error_steps": error_steps,
        "classification": "circular",
        **more,
    }


def test_prmbench_counts_error_steps_from_1_and_all_other_steps_are_good() -> None:
    found = chain(prmbench([2]), Layout.prmbench, columns=MODIFIED)
    assert (found.goods, found.first_error) == ((True, False, True), 1)
    assert (found.problem, found.steps) == ("What now?", ("one", "2", "three"))
    assert (found.source_id, found.error_class) == ("circular_prm_test_p1_0", "circular")
    both = chain(prmbench([3.0, 1]), Layout.prmbench, columns=MODIFIED)
    assert (both.goods, both.first_error) == ((False, True, False), 0)
    assert chain(prmbench([]), Layout.prmbench, columns=MODIFIED).first_error == NO_ERROR


def test_the_original_process_of_prmbench_has_no_error() -> None:
    found = chain(prmbench([2]), Layout.prmbench, columns=ORIGINAL)
    assert (found.goods, found.steps, found.error_class) == ((True, True), ("one", "two"), "correct")
    data = DataConfig(layout=Layout.prmbench, columns=MODIFIED)
    rows: list[tuple[RowLocation, dict[str, Any]]] = [
        (PLACE, prmbench([2])),
        (PLACE, prmbench([3], original_process=["one", " two "])),
        (PLACE, prmbench([1], original_process=["else"])),
        (PLACE, prmbench([1], original_process=None)),
    ]
    assert [each.steps for each in original_chains(rows, data)] == [("one", "two"), ("else",)]
    assert list(original_chains(rows, DataConfig(layout=Layout.processbench))) == []


@pytest.mark.parametrize(
    ("error_steps", "said", "kind"),
    [
        ([0, 1], "names step 0, counted from 1, but the chain has 3 steps", MiscountedRow),
        ([4], "names step 4, counted from 1, but the chain has 3 steps", Unusable),
        (["2"], "names step '2'", Unusable),
        (None, "no list 'error_steps'; its columns are: idx", Unusable),
        (2, "no list 'error_steps'", Unusable),
    ],
)
def test_error_steps_that_name_no_step_are_unusable(error_steps: object, said: str, kind: type) -> None:
    found = read(prmbench(error_steps), Layout.prmbench, columns=MODIFIED)
    assert isinstance(found, Unusable)
    assert type(found) is kind
    assert said in found.detail


def test_ratings_may_stand_in_a_column_of_any_layout() -> None:
    assert chain(processbench([1, 0, -1])).first_error == 2
    assert chain(processbench([1, None, -1])).goods == (True, None, False)
    assert "2 ratings for 3 steps" in why_not(processbench([1, 1]))
    assert "A rating is 'good'" in why_not(processbench([1, 1, "good"]))
    assert "A rating is True" in why_not(processbench([1, 1, True]))
    assert "No step" in why_not(processbench([None, None, None]))


def test_math_shepherds_tags_are_ratings() -> None:
    row = {"input": "How many - or + 1? Step 1: 3 - 1 = 2 ки\nStep 2: 2 + 1 = 4 ки"}
    row["label"] = row["input"].replace("2 ки", "2 +").replace("4 ки", "4 -")
    found = chain(row, Layout.math_shepherd)
    assert (found.goods, found.problem) == ((True, False), "How many - or + 1?")
    assert "in place of each tag" in why_not({**row, "label": "else"}, Layout.math_shepherd)
    assert "in place of each tag" in why_not({"input": row["input"]}, Layout.math_shepherd)


@pytest.mark.parametrize(
    ("layout", "row"),
    [
        (Layout.processbench, processbench(1)),
        (Layout.rows, {"problem": " What? ", "solution": "one\n\n two \nthree", "label": [1, 0, -1]}),
        (Layout.prm800k, prm800k(1, -1)),
        (
            Layout.math_shepherd,
            {"input": "What? Step 1: a ки\nStep 2: b ки", "label": "What? Step 1: a +\nStep 2: b -"},
        ),
    ],
)
def test_a_chain_is_read_as_label_reads_it(layout: Layout, row: dict[str, Any]) -> None:
    ours = read_row({**row, "answer": "5"}, PLACE, DataConfig(layout=layout), lambda _text: None)
    assert isinstance(ours, InputRow)
    assert ours.solution is not None
    found = chain(row, layout)
    assert list(found.steps) == step_texts(ours.solution.text, ours.solution.ends)
    assert (found.problem, found.source_id) == (ours.problem.text, ours.source_id)


@pytest.mark.skipif(not PROCESSBENCH.exists(), reason=f"needs {PROCESSBENCH}")
def test_every_label_of_the_shared_sample_of_processbench_is_read() -> None:
    data = DataConfig(path=str(PROCESSBENCH), layout=Layout.processbench, separator="\n\n")
    found = list(human_chains(read_rows(data.path, None), data, None, Neutral.good))
    rows = [json.loads(line) for line in PROCESSBENCH.read_text().splitlines()]
    assert len(found) == 190
    assert [chain.first_error for chain in found if isinstance(chain, HumanChain)] == [
        row["first_error"] for row in rows
    ]


def test_texts_decide_but_for_white_space() -> None:
    people = [human([True, True], problem="What is\n 1?", steps=["a  b", "c"], source_id="x")]
    matched = match(people, [labelled([1, 1], problem="What is 1?", steps=["a b", "c"], source_id="y")])
    assert len(matched.pairs) == 1
    assert (len(matched.unmatched), matched.unmatched_labelled, matched.other_text) == (0, 0, 0)


def test_steps_cut_elsewhere_are_another_chain_and_an_id_proves_nothing() -> None:
    people = [human([True], steps=["a b"], source_id="x"), human([True], steps=["z"], source_id=None)]
    matched = match(people, [labelled([1, 1], steps=["a", "b"], source_id="x"), labelled([1], steps=["q"])])
    assert matched.pairs == ()
    assert (len(matched.unmatched), matched.unmatched_labelled, matched.other_text) == (2, 2, 1)


def test_an_id_decides_between_equal_texts() -> None:
    ours = [labelled([0], source_id="x"), labelled([1], source_id="y")]
    assert match([human([True], source_id="y")], ours).pairs[0].labelled is ours[1]
    assert match([human([True], source_id="z")], ours).pairs[0].labelled is ours[0]
    assert match([human([True], source_id="z")], ours).unmatched_labelled == 1


def test_the_first_word_of_people_about_a_chain_counts() -> None:
    people = [human([True]), human([False]), human([True])]
    matched = match(people, [labelled([1])])
    assert [found.human for found in matched.pairs] == people[:1]
    assert (matched.repeated, matched.contradicting) == (2, 1)


@given(st.lists(st.integers(0, 4)), st.lists(st.integers(0, 4)))
def test_every_row_is_counted_once(people: list[int], ours: list[int]) -> None:
    matched = match([human([True], steps=[str(n)]) for n in people], [labelled([1], steps=[str(n)]) for n in ours])
    assert len(matched.pairs) + len(matched.unmatched) + matched.repeated == len(people)
    assert len(matched.pairs) + matched.unmatched_labelled == len(ours)
    assert len(matched.pairs) == len(set(people) & set(ours))


def test_subsets_are_what_ids_begin_with() -> None:
    ids = ["gsm8k-40", "gsm8k-7", "math-12", "MATH/test/5", "uuid", None, "7"]
    assert subsets([pair(-1, [1], source_id=name) for name in ids]) == [
        "gsm8k", "gsm8k", "math", "MATH/test", None, None, None,
    ]  # fmt: skip
    many = [pair(-1, [1], source_id=f"{letter}-1") for letter in "abcdefghijklm"]
    assert len(many) > MAX_SUBSETS
    assert set(subsets(many)) == {None}
