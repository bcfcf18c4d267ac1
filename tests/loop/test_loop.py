"""The pure parts of the loop; `make loop` runs the rest."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from tests.loop.commands import Stage
from tests.loop.judged import judged
from tests.loop.plan import LOOPS, SIZE, Files, stages
from tests.loop.problems import drawn, row
from tests.loop.stages import Done, code_of, run_all, still_done
from tests.loop.steered import steered_stages
from tests.loop.transfer import transfer_stages
from tests.loop.truth import error_free, right, right_so_far
from tests.tiny.arithmetic import Exercise, Move, named_exercise

EXERCISE = Exercise(first=12, moves=(Move(sign="*", number=3), Move(sign="-", number=9)))
STAGES = [Stage(name="first", command=("a", "b")), Stage(name="second", command=("c",))]
DONE = [Done(name=stage.name, command=stage.command, seconds=1.0) for stage in STAGES]


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 30), st.integers(0, 30))
def test_no_problem_is_both_learned_from_and_chosen_for(seed: int, train: int, test: int, others: int) -> None:
    problems = drawn(random.Random(seed), SIZE, train, test, others)
    texts = [str(row(exercise)["problem"]) for exercise in (*problems.train, *problems.test, *problems.others)]
    assert (len(problems.train), len(problems.test), len(problems.others)) == (train, test, others)
    assert len(set(texts)) == train + test + others
    without = drawn(random.Random(seed), SIZE, train, test)
    assert (without.train, without.test) == (problems.train, problems.test)


@pytest.mark.parametrize(
    ("steps", "right"),
    [
        (["12*3=36", "36-9=27", "#27"], [True, True, True]),
        (["12*3=35", "35-9=26", "#26"], [False, False, False]),
        (["12*3=36", "36-9=26", "#27"], [True, False, False]),
        (["12*3=36", "36-9=27", "#27", "#27"], [True, True, True, False]),
        (["12*3=36"], [True]),
    ],
)
def test_a_step_is_right_while_all_before_it_are(steps: list[str], right: list[bool]) -> None:
    assert right_so_far(steps, EXERCISE) == right


def test_a_chain_of_a_named_exercise_is_right_again_where_it_corrects_an_error() -> None:
    assert right(["a*9=9", "a*9=8", "b-9=99", "#99"], named_exercise("12a*9b-9")) == [False, True, True, True]
    assert right(["12*3=35", "12*3=36"], EXERCISE) == [False, False]


def test_a_chain_that_corrects_an_error_is_not_error_free() -> None:
    named = named_exercise("12a*9b-9")
    assert error_free(["a*9=9", "a*9=8", "b-9=99", "#99"], named) == [False] * 4
    assert error_free(["a*9=8", "b-9=98", "b-9=99"], named) == [True, False, False]
    assert error_free(["12*3=36", "36-9=27", "#27"], EXERCISE) == [True] * 3


@pytest.mark.parametrize(
    "stage",
    [
        stage
        for loop in LOOPS.values()
        for make in (stages, transfer_stages, steered_stages)
        for stage in make(Files(folder=Path("loop")), loop.policy)
    ],
    ids=lambda stage: stage.name,
)
def test_every_stage_is_a_command_with_settings_it_has(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert stage.command[0] in COMMANDS
    assert main([*stage.command, "--cfg", "job"]) == 0
    assert capsys.readouterr().out


def test_candidates_are_judged_by_their_first_wrong_step() -> None:
    chains = [
        {"problem": "p", "gold_answer": "27", "steps": steps, "outcome": outcome}
        for steps, outcome in (
            (["12*3=36", "36-9=27", "#27"], True),
            (["12*3=36", "36-9=26", "#26"], False),
            (["12*3=35", "#27"], True),
        )
    ]
    rows = judged(chains, {"p": EXERCISE})
    assert [row["label"] for row in rows] == [-1, 1, 0]
    assert [row["final_answer_correct"] for row in rows] == [True, False, True]
    assert len({row["id"] for row in rows}) == 3


def test_the_loop_goes_on_behind_what_is_done() -> None:
    assert still_done(STAGES, []) == []
    assert still_done(STAGES, DONE[:1]) == DONE[:1]
    assert still_done(STAGES, DONE) == DONE


def test_a_stage_that_is_another_now_is_run_again_and_all_behind_it() -> None:
    changed = [Stage(name="first", command=("a", "x")), STAGES[1]]
    assert still_done(changed, DONE) == []


def test_what_fails_ends_the_loop_and_is_not_remembered(tmp_path: Path) -> None:
    memory = tmp_path / "done.json"
    plan = [Stage(name="help", command=("--help",)), Stage(name="nonsense", command=("nonsense",))]
    with pytest.raises(SystemExit) as ended:
        run_all(plan, memory, "code")
    assert ended.value.code == 2
    assert [entry["name"] for entry in json.loads(memory.read_text())] == ["help"]
    assert [done.name for done in run_all([plan[0], plan[0]], memory, "code")] == ["help", "help"]


def test_what_prints_a_result_is_always_run(tmp_path: Path) -> None:
    memory = tmp_path / "done.json"
    names = ("first", "shown", "last")
    plan = [Stage(name=name, command=("--help",), shown_again=name == "shown") for name in names]
    first, shown, last = run_all(plan, memory, "code")
    again = run_all(plan, memory, "code")
    assert (again[0], again[2]) == (first, last)
    assert again[1] != shown
    assert run_all(plan[:1], memory, "code") == [first]


def test_what_other_code_has_made_is_not_taken_for_done(tmp_path: Path) -> None:
    memory, plan = tmp_path / "done.json", [Stage(name="help", command=("--help",))]
    (tmp_path / "code").mkdir()
    codes = []
    for text in ("one", "other", "one"):
        (tmp_path / "code" / "a.py").write_text(text)
        codes.append(code_of(tmp_path / "code"))
    assert codes[0] == codes[2] != codes[1]
    run_all(plan, memory, codes[0])
    with pytest.raises(SystemExit, match="begun with other code: remove it"):
        run_all(plan, memory, codes[1])
