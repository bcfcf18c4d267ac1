"""Rows become problems and solutions, or rejects that tell the owner of the file what to do."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given

from pipeline.config.choices import Layout, Splitter
from pipeline.config.label import Columns, DataConfig
from pipeline.core.ids import content_id
from pipeline.core.records import Problem, Reject, RejectReason, RowLocation, Solution
from pipeline.data.problems import read_row
from pipeline.data.steps import step_texts
from tests import strategies as our

PLACE = RowLocation(file="rows.jsonl", line=7)
DATA = Path(__file__).parents[1].parent / "shared" / "data"


def last_word(text: str) -> str | None:
    """A stand-in for the extractor: what follows the last `####`, without a full stop."""
    _, mark, answer = text.rpartition("####")
    return answer.strip().removesuffix(".") if mark else None


def read(row: dict[str, object], data: DataConfig | None = None) -> tuple[Problem, Solution | None]:
    found = read_row(row, PLACE, data or DataConfig(), last_word)
    assert not isinstance(found, Reject), found.detail
    return found.problem, found.solution


def reject(row: dict[str, object], data: DataConfig | None = None) -> Reject:
    found = read_row(row, PLACE, data or DataConfig(), last_word)
    assert isinstance(found, Reject)
    assert found.location == PLACE
    return found


def steps_of(solution: Solution | None) -> list[str]:
    assert solution is not None
    return step_texts(solution.text, solution.ends)


def test_given_steps_are_joined_and_named_by_their_content() -> None:
    problem, solution = read({"id": "q1", "problem": "1+1?", "answer": "2", "steps": ["one and one", "is 2"]})
    assert problem == Problem(problem_id=content_id("problem", "1+1?", "2"), text="1+1?", golds=("2",))
    assert solution == Solution(
        chain_id=content_id("chain", problem.problem_id, "one and one\nis 2", "12,16"),
        problem_id=problem.problem_id,
        source_id="q1",
        text="one and one\nis 2",
        ends=(12, 16),
    )


def test_rows_of_a_public_data_set_are_answered_with_its_option() -> None:
    assert reject({"question": "1+1?", "answer": "#### 2"}).detail.endswith(" data=gsm8k reads such rows.")
    bench = {"problem": "1+1?", "steps": ["2"], "label": -1, "final_answer_correct": True}
    assert reject(bench).detail.endswith(" data=processbench reads such rows.")
    assert "such rows" not in reject({"task": "1+1?", "answer": "2"}).detail
    refused = reject({"input": "q", "label": "q", "task": "GSM8K"}, DataConfig(layout=Layout.prm800k))
    assert refused.detail.endswith(" data=math_shepherd reads such rows.")


def test_messages_are_a_problem_with_its_solution() -> None:
    asked = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "1+1?"}]},
    ]
    solved = [*asked, {"role": "assistant", "content": "one and one\nis 2"}]
    problem, solution = read({"messages": solved, "answer": "2"})
    assert (problem.text, steps_of(solution)) == ("Be brief.\n\n1+1?", ["one and one", "is 2"])
    assert read({"messages": asked[1:], "answer": "2"}) == (read({"problem": "1+1?", "answer": "2"})[0], None)
    for wrong, named in (
        ([*solved, {"role": "user", "content": "sure?"}], "system, user, assistant, user"),
        ([asked[1], {"role": "tool", "content": "2"}], "user, tool"),
        ([{"role": "user", "content": [{"type": "image"}]}], "user"),
        (7, "none"),
    ):
        refused = reject({"messages": wrong, "answer": "2"})
        assert f"The messages are of {named}; a row has one of user" in refused.detail


def test_cells_of_csv_may_be_outcomes_and_steps() -> None:
    data = DataConfig(columns=Columns(outcome="right"))
    for text, outcome in {"true": True, "0": False, "FALSE": False}.items():
        found = read_row({"problem": "q", "answer": "2", "steps": ["2"], "right": text}, PLACE, data, last_word)
        assert getattr(found, "given_outcome", None) is outcome
    row: dict[str, object] = {"problem": "q", "answer": "2"}
    assert read({**row, "steps": '["a", "b"]'}) == read({**row, "steps": ["a", "b"]})
    assert "The steps are a text, not a list" in reject({**row, "steps": "[a, b]"}).detail


def test_a_solution_text_is_split_and_kept_as_it_is() -> None:
    data = DataConfig(splitter=Splitter.blank_line)
    _, solution = read({"problem": "q", "answer": 1, "solution": " a\n\nb\nc\n"}, data)
    assert solution is not None
    assert solution.text == " a\n\nb\nc\n"
    assert steps_of(solution) == ["a", "b\nc"]


@pytest.mark.parametrize("row", [{}, {"steps": None, "solution": None}])
def test_a_problem_without_solution_is_left_to_the_policy(row: dict[str, object]) -> None:
    assert read({"problem": "q", "answer": "1", **row})[1] is None


def test_columns_that_are_switched_off_are_not_read() -> None:
    data = DataConfig(columns=Columns(id="", steps="", solution=""))
    assert read({"id": "a", "problem": "q", "answer": "1", "steps": [""], "solution": 3}, data)[1] is None


def test_dotted_names_descend_unless_a_column_has_that_name() -> None:
    data = DataConfig(columns=Columns(problem="q.text", answer="q.gold"))
    problem, _ = read({"q": {"text": "inner", "gold": "1"}, "q.text": "outer"}, data)
    assert (problem.text, problem.golds) == ("outer", ("1",))


@pytest.mark.parametrize(
    ("answer", "golds"),
    [
        (" 72 ", ("72",)),
        (72, ("72",)),
        (7.0, ("7",)),
        (-0.0, ("0",)),
        (0.1, ("0.1",)),
        (1e-7, ("0.0000001",)),
        (1e22, ("10000000000000000000000",)),
        (Decimal("7.50"), ("7.5",)),
        (["1/2", 0.5, "1/2"], ("1/2", "0.5")),
    ],
)
def test_answers_become_plain_texts(answer: object, golds: tuple[str, ...]) -> None:
    assert read({"problem": "q", "answer": answer})[0].golds == golds


def test_an_answer_is_taken_out_of_a_text_on_demand() -> None:
    assert read({"problem": "q", "answer": "so 72\n#### 72"}, DataConfig(answer_in_text=True))[0].golds == ("72",)
    refused = reject({"problem": "q", "answer": "72"}, DataConfig(answer_in_text=True))
    assert refused.reason is RejectReason.MISSING_ANSWER
    assert "data.answer_in_text=false" in refused.detail


def test_equal_content_has_equal_ids_whatever_its_own_id() -> None:
    row = {"problem": "q", "answer": "1", "steps": ["a", "b"]}
    first, second = read({"id": 1, **row}), read({"id": 2, **row})
    assert first[0] == second[0]
    assert first[1] is not None
    assert second[1] is not None
    assert first[1].chain_id == second[1].chain_id
    assert (first[1].source_id, second[1].source_id) == ("1", "2")


@pytest.mark.parametrize(
    ("own", "kept"),
    [("a/../b", "a/../b"), (7, "7"), (True, None), ([1], None), pytest.param(10**5000, None, id="huge")],
)
def test_the_owners_id_is_kept_where_it_is_one(own: object, kept: str | None) -> None:
    solution = read({"id": own, "problem": "q", "answer": "1", "steps": ["a"]})[1]
    assert solution is not None
    assert solution.source_id == kept


def test_equal_text_cut_otherwise_is_another_chain() -> None:
    one = read({"problem": "q", "answer": "1", "steps": ["a\nb"]})[1]
    two = read({"problem": "q", "answer": "1", "steps": ["a", "b"]})[1]
    assert one is not None
    assert two is not None
    assert one.text == two.text
    assert one.chain_id != two.chain_id


GOOD: dict[str, object] = {"id": "x", "problem": "q", "answer": "1"}


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({"problem": None, "question": "q"}, "missing_problem", ["question", "data.columns.problem=NAME"]),
        ({"problem": " \n"}, "missing_problem", ["blank"]),
        ({"problem": 5}, "missing_problem", ["of type int"]),
        ({"answer": None, "gold": "1"}, "missing_answer", ["gold", "data.columns.answer=NAME"]),
        ({"answer": ""}, "missing_answer", ["blank"]),
        ({"answer": []}, "missing_answer", ["empty"]),
        ({"answer": True}, "missing_answer", ["of type bool"]),
        ({"answer": ["1", None]}, "missing_answer", ["null"]),
        ({"answer": float("nan")}, "missing_answer", ["finite"]),
        ({"answer": Decimal("sNaN")}, "missing_answer", ["finite"]),
        ({"answer": 10**5000}, "too_large", ["digits"]),
        ({"answer": Decimal("1e999999")}, "too_large", ["digits"]),
        ({"steps": []}, "no_steps", ["data.columns.steps=''"]),
        ({"steps": ["a", " ", "b"]}, "bad_steps", ["Step 2 of 3", "blank"]),
        ({"steps": ["a", None]}, "bad_steps", ["Step 2 of 2", "null"]),
        ({"steps": '["a", b]'}, "bad_steps", ["not a list", "data.columns.solution"]),
        ({"solution": ["a"]}, "bad_steps", ["of type list", "data.columns.steps"]),
        ({"solution": "\n "}, "no_steps", ["blank"]),
        ({"problem": "q\x00"}, "bad_text", ["Character 1 of the problem", "NUL"]),
        ({"steps": ["ab", "c\ud800"]}, "bad_text", ["Character 4 of the steps", "U+D800"]),
        ({"solution": "\x00"}, "bad_text", ["Character 0 of the solution"]),
        ({"answer": "\udfff"}, "bad_text", ["Character 0 of the answer"]),
        ({"id": "\x00"}, "bad_text", ["Character 0 of the id"]),
        ({"problem": "q" * 101}, "too_large", ["101 characters", "data.max_chars=100"]),
        ({"solution": "q" * 101}, "too_large", ["data.max_chars=100"]),
        ({"steps": ["q" * 50, "q" * 50]}, "too_large", ["101 characters", "data.max_chars=100"]),
        ({"steps": ["q"] * 6}, "too_large", ["6 steps", "data.max_steps=5"]),
        ({"solution": "q\n" * 6}, "too_large", ["6 steps", "data.max_steps=5"]),
    ],
)
def test_bad_rows_are_rejected_with_the_remedy(change: dict[str, object], reason: str, words: list[str]) -> None:
    refused = reject({**GOOD, **change}, DataConfig(max_chars=100, max_steps=5))
    assert refused.reason.value == reason
    assert not [word for word in words if word not in refused.detail], refused.detail
    assert refused.source_id == (None if "id" in change else "x")


def test_column_names_in_a_message_are_short_and_printable() -> None:
    refused = reject({"\ud800\x00" + "n" * 1000: 1, **{f"c{i}": i for i in range(100)}})
    refused.detail.encode()
    assert len(refused.detail) < 500


@given(our.rows)
def test_any_row_is_read_or_rejected(row: dict[str, object]) -> None:
    for layout in Layout:
        found = read_row(row, PLACE, DataConfig(layout=layout, max_chars=1000), last_word)
        if isinstance(found, Reject):
            found.detail.encode()
        elif found.solution is not None:
            assert found.solution.ends[-1] == len(found.solution.text)


def completion(text: str, rating: int = 1) -> dict[str, object]:
    return {"text": text, "rating": rating, "flagged": False}


def test_prm800k_follows_the_chosen_completions_up_to_the_error() -> None:
    steps: list[object] = [
        {"completions": [completion("a"), completion("b")], "human_completion": None, "chosen_completion": 1},
        {"completions": [completion("x", -1)], "human_completion": completion("human"), "chosen_completion": None},
        {
            "completions": [completion("wrong", -1), completion("other")],
            "human_completion": None,
            "chosen_completion": None,
        },
        {"completions": [completion("never")], "human_completion": None, "chosen_completion": 0},
    ]
    row: dict[str, object] = {
        "question": {"problem": "q", "ground_truth_answer": "5"},
        "label": {"steps": steps, "finish_reason": "found_error"},
    }
    problem, solution = read(row, DataConfig(layout=Layout.prm800k))
    assert (problem.text, problem.golds) == ("q", ("5",))
    assert steps_of(solution) == ["b", "human", "wrong"]
    steps[0] = {"completions": [completion("a")], "human_completion": None, "chosen_completion": 9}
    assert reject(row, DataConfig(layout=Layout.prm800k)).reason is RejectReason.BAD_STEPS


def test_processbench_takes_its_own_answer_only_where_it_is_right() -> None:
    data = DataConfig(layout=Layout.processbench, answer_in_text=False)
    row: dict[str, object] = {"id": "g-1", "problem": "q", "steps": ["a", "#### 5."], "final_answer_correct": True}
    problem, solution = read(row, data)
    assert problem.golds == ("5",)
    assert steps_of(solution) == ["a", "#### 5."]
    assert read({**row, "answer": "6"}, data)[0].golds == ("6",)
    for change in ({"final_answer_correct": False}, {"steps": ["no mark"]}):
        refused = reject({**row, **change}, data)
        assert refused.reason is RejectReason.MISSING_ANSWER
        assert "'answer'" in refused.detail
        assert refused.source_id == "g-1"
    in_text = DataConfig(layout=Layout.processbench, answer_in_text=True)
    assert read(row, in_text)[0].golds == ("5",)


PRMBENCH = DataConfig(
    layout=Layout.prmbench, columns=Columns(id="idx", problem="modified_question", steps="modified_process")
)


def test_prmbench_has_the_answer_of_its_original_process_where_the_question_is_the_same() -> None:
    row: dict[str, object] = {
        "idx": "circular_prm_test_p1_0",
        "original_question": "q",
        "modified_question": "q",
        "original_process": ["a", "#### 5"],
        "modified_process": ["a", "b", "#### 6"],
    }
    problem, solution = read(row, PRMBENCH)
    assert (problem.text, problem.golds) == ("q", ("5",))
    assert steps_of(solution) == ["a", "b", "#### 6"]
    assert read({**row, "answer": "6"}, PRMBENCH)[0].golds == ("6",)
    for change, said in (
        ({"modified_question": "another"}, "its question is not 'original_question'"),
        ({"original_process": ["no mark"]}, "its 'original_process' states no readable answer"),
        ({"original_process": None}, "its 'original_process' states no readable answer"),
    ):
        refused = reject({**row, **change}, PRMBENCH)
        assert refused.reason is RejectReason.MISSING_ANSWER
        assert said in refused.detail
        assert "add the known answer as the column 'answer'" in refused.detail
        assert refused.source_id == "circular_prm_test_p1_0"
    originals = Columns(id="idx", problem="original_question", steps="original_process")
    assert steps_of(read(row, DataConfig(layout=Layout.prmbench, columns=originals))[1]) == ["a", "#### 5"]


def test_math_shepherd_is_taken_apart_at_its_tags() -> None:
    data = DataConfig(layout=Layout.math_shepherd)
    text = "How many? Step 1: 1+1=2. ки\nStep 2: The answer is: #### 2 ки"
    problem, solution = read({"input": text, "label": text.replace("ки", "+"), "task": "GSM8K"}, data)
    assert (problem.text, problem.golds) == ("How many?", ("2",))
    assert steps_of(solution) == ["Step 1: 1+1=2.", "Step 2: The answer is: #### 2"]
    wrong: dict[str, object] = {"input": text, "label": text.replace("ки", "-")}
    assert reject(wrong, data).reason is RejectReason.MISSING_ANSWER
    assert read({**wrong, "answer": 3}, data)[0].golds == ("3",)


def outcome_of(row: dict[str, object], layout: Layout = Layout.rows, name: str = "") -> bool | None:
    found = read_row(row, PLACE, DataConfig(layout=layout, columns=Columns(outcome=name)), last_word)
    assert not isinstance(found, Reject), found.detail
    return found.given_outcome


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(True, True), (False, False), (1, True), (0, False), (1.0, True), (None, None), (float("nan"), None)],
)
def test_the_outcome_is_read_from_its_column(value: object, outcome: bool | None) -> None:
    row: dict[str, object] = {"problem": "q", "answer": "5", "steps": ["a"], "meta": {"right": value}}
    assert outcome_of(row, name="meta.right") is outcome
    assert outcome_of(row) is None
    assert outcome_of({**row, "steps": None}, name="meta.right") is None
    bench: dict[str, object] = {**row, "final_answer_correct": value}
    assert outcome_of(bench, Layout.processbench, "final_answer_correct") is outcome
    assert outcome_of(bench, Layout.processbench) is None
    assert outcome_of(row, Layout.processbench, "final_answer_correct") is None  # some copies of the data lack it
    assert outcome_of({**bench, "own": 0}, Layout.processbench, "own") is False


def test_math_shepherds_outcome_is_its_last_tag() -> None:
    text = "q Step 1: a ки\nStep 2: b ки"
    row: dict[str, object] = {"input": text, "answer": "5"}
    assert outcome_of({**row, "label": "q Step 1: a +\nStep 2: b -"}, Layout.math_shepherd, "label") is False
    assert outcome_of({**row, "label": "q Step 1: a -\nStep 2: b +\n"}, Layout.math_shepherd, "label") is True
    assert outcome_of({**row, "label": 3}, Layout.math_shepherd, "label") is None
    assert outcome_of({**row, "label": "q Step 1: a -\nStep 2: b +\n"}, Layout.math_shepherd) is None
    assert outcome_of({**row, "own": 1}, Layout.math_shepherd, "own") is True


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("yes", "'yes'"), ("", "blank"), (2, "2"), (-1, "-1"), (0.5, "0.5"), ([True], "of type list"),
        ({}, "of type dict"), (10**400, "of type int"), (float("inf"), "of type float"), ("\ud800" + "x" * 99, "'\\ud800x"),
    ],
)  # fmt: skip
def test_an_outcome_of_another_kind_is_a_reject_that_names_its_column(value: object, shown: str) -> None:
    row: dict[str, object] = {"problem": "q", "answer": "5", "steps": ["a"], "meta": {"right": value}}
    own = reject(row, DataConfig(columns=Columns(outcome="meta.right")))
    columns = Columns(outcome="final_answer_correct")
    bench = reject({**row, "final_answer_correct": value}, DataConfig(layout=Layout.processbench, columns=columns))
    for found, name in ((own, "meta.right"), (bench, "final_answer_correct")):
        assert found.reason is RejectReason.BAD_OUTCOME
        assert f"The outcome in the column '{name}' is {shown}" in found.detail
        assert "it must be true or false, 1 or 0, or null where nobody knows it" in found.detail
        found.detail.encode()
        assert len(found.detail) < 300


def test_a_column_of_outcomes_that_is_not_there_is_a_reject_with_a_remedy() -> None:
    row: dict[str, object] = {"problem": "q", "answer": "5", "steps": ["a"]}
    for name in ("right", "meta.right", "answer.right"):
        found = reject(row, DataConfig(columns=Columns(outcome=name)))
        assert found.reason is RejectReason.BAD_OUTCOME
        assert f"no column '{name}'" in found.detail
        assert "data.columns.outcome=NAME" in found.detail


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "missing_problem"),
        ("no label", "bad_steps"),
        ("q Step 1: a ки Step 1: b ки", "bad_steps"),
        ("q Step 1: a ки ки", "bad_steps"),
        ("q Step 1: a ки rest", "bad_steps"),
        ("Step 1: a ки", "missing_problem"),
    ],
)
def test_math_shepherd_rows_out_of_shape_are_rejected(text: object, reason: str) -> None:
    row: dict[str, object] = {"input": text, "label": "", "answer": "1"}
    assert reject(row, DataConfig(layout=Layout.math_shepherd)).reason.value == reason


@pytest.mark.parametrize("layout", [Layout.prm800k, Layout.processbench, Layout.math_shepherd, Layout.prmbench])
def test_a_row_of_another_layout_is_reported_so(layout: Layout) -> None:
    refused = reject({"question_text": "q"}, DataConfig(layout=layout))
    assert f"data.layout={layout.value}" in refused.detail
    assert "question_text" in refused.detail


@pytest.mark.skipif(not DATA.is_dir(), reason="the development data is not here")
@pytest.mark.parametrize(
    ("name", "layout"),
    [("gsm8k_dev", Layout.rows), ("processbench_dev", Layout.processbench), ("processbench_dev", Layout.rows)],
)
def test_real_chains_keep_their_steps(name: str, layout: Layout) -> None:
    for line in (DATA / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        problem, solution = read(row, DataConfig(layout=layout))
        assert problem.golds == (row["answer"].strip(),)
        assert steps_of(solution) == [step.strip() for step in row["steps"]]


@pytest.mark.skipif(not DATA.is_dir(), reason="the development data is not here")
def test_real_chains_joined_by_blank_lines_are_split_back() -> None:
    for line in (DATA / "processbench_dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        text = "\n\n".join(row["steps"])
        data = DataConfig(splitter=Splitter.blank_line)
        _, solution = read({"problem": "q", "answer": "1", "solution": text}, data)
        assert steps_of(solution) == [step.strip() for step in row["steps"]], row["id"]
