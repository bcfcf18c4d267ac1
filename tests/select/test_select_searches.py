"""`select` on the command line, with runs of `search` that are written by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.__main__ import main
from tests.searches.handmade import Ended, Searched, search_run

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]
RIGHT, WRONG = Ended(scores=[0.5, 0.9]), Ended(answer="8", right=False, scores=[0.6, 0.3])


def select(*arguments: str) -> int:
    return main(["select", *arguments])


def listed(*runs: Path) -> str:
    return f"searches=[{','.join(map(str, runs))}]"


def best_of_n(folder: Path, problems: int = 8, **other: Any) -> Path:
    """Four chains for each problem. The best-scored one is right in every second problem, and in one of four a majority."""
    of = []
    for at in range(problems):
        chains = [RIGHT, WRONG, WRONG, RIGHT if at % 4 == 0 else WRONG]
        if at % 2:
            chains[0] = Ended(scores=[0.5, 0.1])
        chosen = 0 if at % 2 == 0 else 1
        of.append(
            Searched(
                problem=f"p{at}",
                candidates=chains,
                chosen=chosen,
                confidence=0.9 - 0.1 * at,
                policy_tokens=80,
                scorer_computed=40,
            )
        )
    return search_run(folder, of, **other)


def beam(folder: Path, problems: int = 8, **other: Any) -> Path:
    """Always right, for as many tokens as two chains of best-of-n cost."""
    of = [
        Searched(problem=f"p{at}", candidates=[RIGHT], confidence=0.5, policy_tokens=40, scorer_computed=20)
        for at in range(problems)
    ]
    return search_run(folder, of, method="beam", whole=False, settings={"search.width": 2}, **other)


def test_runs_are_compared_at_equal_tokens(tmp_path: Path, capsys: Printed) -> None:
    bon, grown, out = best_of_n(tmp_path / "bon"), beam(tmp_path / "beam"), tmp_path / "figures.json"
    assert select(listed(grown, bon), f"out={out}") == 0
    shown = capsys.readouterr().out
    assert "problems  8 that all runs have" in shown
    assert "accuracy against the best of k chains of bon, where k chains cost as many tokens in all" in shown
    found = json.loads(out.read_text())
    assert (found["problems"], found["against"], found["differing"]) == (8, "bon", [])
    of_beam, of_bon = found["runs"]
    assert of_beam["summary"]["accuracy"]["value"] == 1
    assert of_bon["summary"]["accuracy"]["value"] == 0.5
    assert of_beam["summary"]["total_tokens"] == 60
    equal = of_beam["equal_tokens"]
    assert (equal["k"], equal["most"], equal["problems"]) == (2, 4, 8)
    # Best of 2 of 4: with one right chain that scores best, 1/2; with two that do, 5/6; with the right one scored last, 0.
    assert equal["best_of_k"]["value"] == pytest.approx((2 * 5 / 6 + 2 / 2 + 0) / 8)
    assert equal["difference"]["value"] == pytest.approx(1 - equal["best_of_k"]["value"])
    assert of_bon["equal_tokens"] is None


def test_a_single_run_needs_no_list(tmp_path: Path, capsys: Printed) -> None:
    assert select(f"searches={best_of_n(tmp_path / 'bon')}") == 0
    shown = capsys.readouterr().out
    assert "problems  8\n" in shown
    assert "against the best of k" not in shown
    assert "0.5" in shown


def test_runs_are_named_by_the_parts_of_their_folders_that_differ(tmp_path: Path, capsys: Printed) -> None:
    bon, grown = best_of_n(tmp_path / "one" / "run"), beam(tmp_path / "two" / "run")
    assert select(listed(grown, bon)) == 0
    shown = capsys.readouterr().out
    assert f"two/run: {grown}" in shown
    assert "the best of k chains of one/run" in shown


def test_what_costs_more_than_all_chains_is_out_of_range(tmp_path: Path, capsys: Printed) -> None:
    bon = best_of_n(tmp_path / "bon")
    dear, cheap = (
        search_run(
            tmp_path / name,
            [
                Searched(problem=f"p{at}", candidates=[RIGHT], policy_tokens=tokens, scorer_computed=0)
                for at in range(8)
            ],
            whole=False,
        )
        for name, tokens in (("dear", 121), ("cheap", 29))
    )
    assert select(listed(bon, dear, cheap)) == 0
    shown = capsys.readouterr().out
    assert "out of range: 4 chains cost 120" in shown
    assert "out of range: one chain costs 30" in shown


def test_problems_that_not_all_runs_have_are_left_out(tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "o.json"
    assert select(listed(best_of_n(tmp_path / "bon"), beam(tmp_path / "beam", 5)), f"out={out}") == 0
    shown = capsys.readouterr().out
    assert "problems  5 that all runs have" in shown
    assert "3 more that only some runs have, left out" in shown
    assert [each["summary"]["problems"] for each in json.loads(out.read_text())["runs"]] == [5, 5]


def test_accuracy_is_claimed_only_where_it_is_known(tmp_path: Path, capsys: Printed) -> None:
    of = [
        Searched(problem="a", candidates=[RIGHT]),
        Searched(problem="b", candidates=[Ended(right=None)]),
        Searched(problem="c", candidates=[RIGHT], gold=None),
        Searched(problem="d", candidates=[], chosen=None, confidence=None),
        Searched(problem="e", candidates=[Ended(answer=None, right=False)]),
    ]
    out = tmp_path / "o.json"
    assert select(f"searches={search_run(tmp_path / 'run', of)}", f"out={out}") == 0
    shown = capsys.readouterr().out
    assert "run: accuracy is not claimed for 2 of 5 searches (40 %): 1 without a known answer, 1 whose chosen" in shown
    assert "run: 1 search without a chain, counted as wrong" in shown
    (found,) = json.loads(out.read_text())["runs"]
    assert found["summary"]["accuracy"]["value"] == pytest.approx(1 / 3)
    assert found["coverage"]["searches"] == 3


def test_trust_is_shown_where_it_was_asked_for(tmp_path: Path, capsys: Printed) -> None:
    of = [
        Searched(problem=f"p{at}", candidates=[RIGHT if at < 6 else WRONG], confidence=1 - at / 10, trusted=at < 4)
        for at in range(8)
    ]
    run = search_run(tmp_path / "run", of, accept=0.65, settings={"calibration": "c.json"})
    assert select(f"searches={run}") == 0
    shown = capsys.readouterr().out
    assert "trust in run\n  search.accept=0.65: 50 %" in shown
    assert "of 4 trusted choices that can be graded 100 % (51-100) are right, of the others 50 %" in shown
    assert "promises" not in shown
    assert "accuracy of the choices with the most confidence, by coverage" in shown


def test_names_from_outside_are_printed_as_they_are(tmp_path: Path, capsys: Printed) -> None:
    of = [Searched(problem="a", candidates=[RIGHT])]
    run = search_run(tmp_path / "[red]x[/red]\nforged line", of, method="\x1b[31mevil")
    assert main(["select", f"searches='{run}'"]) == 0
    shown = capsys.readouterr().out
    assert "[red]x[/red] forged line" in shown
    assert "\nforged" not in shown
    assert "\x1b[31m" not in shown


def test_candidates_of_a_run_compete_like_scored_chains(tmp_path: Path, capsys: Printed) -> None:
    run, out, best = best_of_n(tmp_path / "bon"), tmp_path / "o.json", tmp_path / "best.jsonl"
    assert select(f"scores={run}", f"out={out}", f"best={best}", "n=[2,4]") == 0
    shown = capsys.readouterr().out
    assert "problems  8, with 32 candidates in all (4 each)" in shown
    assert "search    best_of_n, n=4: the tables choose among its candidates in other ways" in shown
    found = {each["n"]: each["accuracy"] for each in json.loads(out.read_text())["selections"]}
    assert found[4]["prm"]["mean"] == 0.5
    assert found[2]["prm"]["mean"] == pytest.approx((2 * 5 / 6 + 2 / 2) / 8)
    assert found[4]["oracle"]["mean"] == 1
    chosen = [json.loads(line) for line in best.read_text().splitlines()]
    assert [each["final_answer"] for each in chosen] == ["7", "8"] * 4


def test_the_choice_of_the_search_is_written_not_the_best_score(tmp_path: Path) -> None:
    of = [
        Searched(problem="a", candidates=[RIGHT, WRONG], chosen=1),
        Searched(problem="b", candidates=[], chosen=None),
        Searched(problem="c", candidates=[WRONG, RIGHT], chosen=0, gold=None),
    ]
    best, out = tmp_path / "best.jsonl", tmp_path / "o.json"
    run = search_run(tmp_path / "run", of, method="majority", per_unit=1)
    assert select(f"scores={run}", f"best={best}", f"out={out}", "n=[1,2]") == 0
    chosen = [json.loads(line) for line in best.read_text().splitlines()]
    assert [(each["problem"], each["final_answer"], each["score"]) for each in chosen] == [
        ("a", "8", 0.3),
        ("c", "8", 0.3),
    ]
    found = json.loads(out.read_text())
    # The problem without a chain is wrong, the one without a known answer is left out.
    assert (found["problems"], found["empty"], found["unknown"]) == (2, 1, 1)
    assert found["selections"][0]["accuracy"]["random"]["mean"] == 0.25


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["searches={dir}/none"], ["does not contain a run: give a directory that `search` has written"]),
        (["searches={dir}"], ["does not contain a run"]),
        (["searches={dir}/scores"], ["is a run of `score`"]),
        (["searches={dir}/half"], ["1 of 4 units is unfinished", "finish the run with `search`"]),
        (["scores={dir}/half"], ["1 of 4 units is unfinished", "finish the run with `search`"]),
        (["searches=[{dir}/bon,{dir}/strange]"], ["no problem is in all runs", "name runs on the same problems"]),
        (["searches=[{dir}/bon,{dir}/../{name}/bon]"], ["names a run twice"]),
        (["searches=[]"], ["searches=[]", "a list of them"]),
        (["searches=''"], ["searches=", "a list of them"]),
        (["searches=[3]"], ["put quotes around a number"]),
        (["searches={dir}/bon", "scores={dir}/bon"], ["give either scores=FILE"]),
        (["searches={dir}/bon", "best={dir}/b"], ["best is a setting for scores=...: leave it out"]),
        (["searches={dir}/bon", "aggregation=min"], ["aggregation is a setting for scores"]),
        (["searches={dir}/bon", "n=[2]"], ["n is a setting for scores=...: leave it out"]),
        (["searches={dir}/bon", "out={dir}/bon/o.json"], ["out=", "which is read"]),
        (["searches={dir}/bon", "out={dir}/none/o.json"], ["does not exist; create it"]),
    ],
)
def test_what_cannot_be_used_is_reported_in_one_line(
    bad: Path, capsys: Printed, arguments: list[str], said: list[str]
) -> None:
    assert select(*(argument.format(dir=bad, name=bad.name) for argument in arguments)) == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert all(words in shown.err for words in said)
    assert "Traceback" not in shown.err + shown.out


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that cannot be used, or not in every way."""
    folder = tmp_path_factory.mktemp("runs")
    best_of_n(folder / "bon")
    best_of_n(folder / "half", unfinished=1)
    best_of_n(folder / "scores", command="score")
    search_run(folder / "strange", [Searched(problem="q")])
    return folder


def test_a_damaged_run_is_an_error(tmp_path: Path, capsys: Printed) -> None:
    run = best_of_n(tmp_path / "bon")
    (path, *_) = sorted((run / "candidates").iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    assert select(f"searches={run}") == 1
    assert "is damaged" in capsys.readouterr().err


def test_runs_that_begin_with_chains_of_the_input_are_not_compared_at_equal_tokens(
    tmp_path: Path, capsys: Printed
) -> None:
    """Nothing says what those chains cost. A problem with several rows counts once."""
    again = [
        Searched(problem=f"p{at % 4}", candidates=[RIGHT if at < 4 else WRONG], given=["It is 7."], policy_tokens=9)
        for at in range(8)
    ]
    written = search_run(tmp_path / "again", again, method="regenerate", settings={"search.start": "weakest"})
    out = tmp_path / "figures.json"
    assert select(listed(written, best_of_n(tmp_path / "bon", 4)), f"out={out}") == 0
    shown = capsys.readouterr().out
    assert "again: 8 searches of 4 problems: a problem counts with their mean" in shown
    assert "again: 8 searches begin with a chain of the input, whose tokens nobody counted" in shown
    assert "bon: " not in shown.partition("choices of the searches")[0].replace(f"bon: {tmp_path / 'bon'}", "")
    assert "against the best of k" not in shown
    found = json.loads(out.read_text())
    of_again, of_bon = found["runs"]
    assert (of_again["summary"]["given"], of_bon["summary"]["given"]) == (8, 0)
    assert (of_again["summary"]["problems"], of_again["summary"]["accuracy"]["value"]) == (4, 0.5)
    assert of_again["equal_tokens"] is None


def test_what_a_comparison_at_equal_tokens_needs_is_said_where_it_is_lacking(tmp_path: Path, capsys: Printed) -> None:
    lacking = "no comparison at equal tokens: it needs a run of search=best_of_n with scores, without search.accept"
    grown = beam(tmp_path / "beam")
    unscored = search_run(tmp_path / "unscored", [Searched(problem="p0", candidates=[Ended(scores=[None])])])
    for run in (grown, best_of_n(tmp_path / "stops", accept=0.9), unscored):
        assert select(f"searches={run}") == 0
        assert lacking in capsys.readouterr().out
    assert select(listed(grown, best_of_n(tmp_path / "bon"))) == 0
    assert lacking not in capsys.readouterr().out


def test_the_chains_that_a_search_chose_from_stand_beside_n(tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "figures.json"
    of = [Searched(problem=f"p{at}", candidates=[RIGHT] * (at + 1)) for at in range(4)]
    assert select(f"searches={search_run(tmp_path / 'dvts', of, method='dvts', n=16)}", f"out={out}") == 0
    assert " ".join(capsys.readouterr().out.split()).count("dvts dvts 16 2.5") == 1
    assert json.loads(out.read_text())["runs"][0]["summary"]["chains"] == 2.5


def test_chains_without_a_score_are_compared_by_what_needs_none(tmp_path: Path, capsys: Printed) -> None:
    """A majority vote has no scores, so a figure for the best-scored chain would be one of a random chain."""
    bare = Ended(scores=[None, None]), Ended(answer="8", right=False, scores=[None, None])
    of = [Searched(problem=f"p{at}", candidates=[bare[0], bare[1], bare[at % 2]]) for at in range(4)]
    run, out = search_run(tmp_path / "run", of, method="majority"), tmp_path / "o.json"
    assert select(f"scores={run}", f"out={out}", "n=[1,3]") == 0
    shown = capsys.readouterr().out
    assert "no candidate has one, so only choices without scores are compared" in shown
    assert "PRM" not in shown
    (_, three) = json.loads(out.read_text())["selections"]
    assert {name: each["mean"] for name, each in three["accuracy"].items()} == pytest.approx(
        {"majority": 0.5, "random": 0.5, "oracle": 1.0}
    )
    assert three["prm_ahead_of"] == {}
