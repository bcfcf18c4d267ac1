"""`select` on the command line, with score files made by hand and with a run that sampled its chains."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.select.read import repeat_drawn
from tests.runtime.in_process import label_in_process
from tests.select.scored import Row, row, written
from tests.settings import compose_label

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]

ROWS = [
    row("p1", "a", "7", 0.9),
    row("p1", "b", "8", 0.2),
    row("p1", "c", "8", 0.3),
    row("p2", "d", "6", 0.8),
    row("p2", "e", "7", 0.1),
    row("p2", "f", "7", 0.2),
]


def select(*arguments: str) -> int:
    return main(["select", *arguments])


def figures(path: Path, n: int) -> dict[str, float]:
    """Method -> mean accuracy at n."""
    selections = json.loads(path.read_text())["selections"]
    (found,) = (each["accuracy"] for each in selections if each["n"] == n)
    return {method: estimate["mean"] for method, estimate in found.items()}


@pytest.mark.parametrize("name", ["prm.parquet", "prm.jsonl"])
def test_figures_are_printed_and_written(tmp_path: Path, capsys: Printed, name: str) -> None:
    scores, out = written(tmp_path / name, ROWS), tmp_path / "select.json"
    assert select(f"scores={scores}", f"out={out}", "n=[1,3,99]") == 0
    shown = capsys.readouterr().out
    assert "2, with 6 candidates in all (3 each)" in shown
    assert "by no model" in shown
    assert figures(out, 1) == pytest.approx(dict.fromkeys(["prm", "weighted", "majority", "random", "oracle"], 0.5))
    assert figures(out, 3) == pytest.approx(
        {"prm": 0.5, "weighted": 0.5, "majority": 0.5, "random": 0.5, "oracle": 1.0}
    )
    record = json.loads(out.read_text())
    assert [each["n"] for each in record["selections"]] == [1, 3]
    assert (record["problems"], record["candidates"], record["unjudged"]) == (2, 6, 0)


def test_an_outcome_model_competes_by_its_last_score(tmp_path: Path, capsys: Printed) -> None:
    scores = written(tmp_path / "prm.parquet", ROWS)
    last = {"a": 0.9, "b": 0.1, "c": 0.1, "d": 0.1, "e": 0.9, "f": None}
    orm = written(tmp_path / "orm.parquet", [each | {"score_last": last[str(each["chain_id"])]} for each in ROWS])
    out = tmp_path / "select.json"
    assert select(f"scores={scores}", f"outcome_scores={orm}", f"out={out}", "n=[3]") == 0
    assert figures(out, 3)["orm"] == pytest.approx(1.0)
    assert "1 of the candidates without an outcome score" in capsys.readouterr().out


def test_another_aggregation_chooses_others(tmp_path: Path) -> None:
    rows = [each | {"score_min": 1 - float(str(each["score"]))} for each in ROWS]
    scores, out = written(tmp_path / "prm.parquet", rows), tmp_path / "select.json"
    assert select(f"scores={scores}", f"out={out}", "n=[3]", "aggregation=min") == 0
    assert figures(out, 3)["prm"] == pytest.approx(0.5)
    ahead = json.loads(out.read_text())["selections"][0]["prm_ahead_of"]
    assert set(ahead) == {"majority", "random"}


def test_what_is_missing_is_reported_and_counts_as_wrong(tmp_path: Path, capsys: Printed) -> None:
    rows = [
        *ROWS,
        row("p1", "g", None, None),
        row("p3", "h", "1", 0.5, gold=None),
        row("p4", "i", "7", 0.5, outcome=True),
    ]
    scores, out = written(tmp_path / "prm.parquet", rows), tmp_path / "select.json"
    assert select(f"scores={scores}", f"out={out}", "n=[1,4]") == 0
    shown = capsys.readouterr().out
    assert "3, with 8 candidates in all (1 to 4 each)" in shown
    assert "1 more without a known answer, left out" in shown
    assert "2 with fewer than 4 candidates" in shown
    assert "1 of the candidates without an outcome, counted as wrong" in shown
    assert "1 of the candidates without a score, ranked last" in shown
    assert figures(out, 1)["random"] == pytest.approx((1 / 4 + 2 / 3 + 1) / 3)


def test_the_best_chains_are_written_where_no_answer_is_known(tmp_path: Path, capsys: Printed) -> None:
    rows = [each | {"gold_answer": None, "outcome": None} for each in (*ROWS, row("p0", "z", None, None))]
    scores, best = written(tmp_path / "prm.parquet", rows), tmp_path / "chosen.jsonl"
    assert select(f"scores={scores}", f"best={best}") == 0
    assert "nothing to compare" in capsys.readouterr().out
    chosen = [json.loads(line) for line in best.read_text().splitlines()]
    assert [(each["problem_id"], each["chain_id"]) for each in chosen] == [("p1", "a"), ("p2", "d"), ("p0", "z")]
    assert chosen[0]["steps"] == ["so", "it is 7"]


def test_a_difference_that_is_rounding_has_no_sign(tmp_path: Path, capsys: Printed) -> None:
    chains = ("a", "b", "c")
    rows = [row("p1", chain, "8" if chain == "a" else "7", 0.5) for chain in chains]
    rows += [row("p2", f"{chain}2", "7" if chain == "a" else "8", 0.5) for chain in chains]
    assert select(f"scores={written(tmp_path / 'prm.parquet', rows)}", "n=[1]") == 0
    leads = capsys.readouterr().out.partition("minus accuracy of each method")[2]
    assert "0.000" in leads
    assert "-" not in leads
    assert "+" not in leads


@pytest.fixture(scope="module")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine chains each for six problems."""
    folder = tmp_path_factory.mktemp("drawn")
    data = folder / "problems.jsonl"
    data.write_text("".join(json.dumps({"problem": f"What is 3+{n}?", "answer": str(3 + n)}) + "\n" for n in range(6)))
    asked = ["policy=oracle", "estimator=fixed", "sampling.rollouts=1", "sampling.solutions=9"]
    label_in_process(compose_label([*asked, f"data.path={data}", f"run_dir={folder / 'run'}"]))
    return folder / "run"


def scored_rows(run_dir: Path) -> list[Row]:
    labels = pl.read_parquet(run_dir / "labels" / "*.parquet")
    return [
        row(each["problem_id"], each["chain_id"], each["final_answer"], 0.5, gold=each["gold_answer"])
        | {"outcome": each["outcome"]}
        for each in labels.to_dicts()
    ]


def test_draws_of_the_run_count_as_often_as_they_came(drawn_run: Path, tmp_path: Path, capsys: Printed) -> None:
    labels = pl.read_parquet(drawn_run / "labels" / "*.parquet")
    draws = pl.read_parquet(drawn_run / "solutions" / "*.parquet")
    scores, out = written(tmp_path / "prm.parquet", scored_rows(drawn_run)), tmp_path / "select.json"
    assert select(f"scores={scores}", f"run_dir={drawn_run}", f"out={out}", "n=[1]") == 0
    assert json.loads(out.read_text())["candidates"] == draws.height == 54
    right = draws.join(labels, on="chain_id")["outcome"].sum()
    assert figures(out, 1)["prm"] == pytest.approx(right / 54)
    assert labels.height < 54

    strange = written(tmp_path / "strange.parquet", ROWS)
    assert select(f"scores={strange}", f"run_dir={drawn_run}") == 2
    assert "did not sample 6 of the 6 chains" in capsys.readouterr().err


def test_what_of_the_run_has_no_score_is_reported_or_refused(drawn_run: Path, tmp_path: Path, capsys: Printed) -> None:
    rows = scored_rows(drawn_run)
    first = str(rows[0]["problem_id"])
    of_first = sum(each["problem_id"] == first for each in rows)
    assert of_first > 1
    out = tmp_path / "select.json"
    others = written(tmp_path / "others.parquet", [each for each in rows if each["problem_id"] != first])
    assert select(f"scores={others}", f"run_dir={drawn_run}", f"out={out}", "n=[1]") == 0
    shown = capsys.readouterr().out
    assert "problems  5, with 45 candidates in all (9 each)" in shown
    assert "1 more with chains in the run but none in the scores" in shown
    assert "empty" not in shown
    assert (json.loads(out.read_text())["absent"], json.loads(out.read_text())["empty"]) == (1, 0)

    cut = written(tmp_path / "cut.parquet", rows[1:])
    assert select(f"scores={cut}", f"run_dir={drawn_run}") == 2
    assert f"lacks 1 of the {len(rows)} chains" in capsys.readouterr().err


def test_empty_draws_are_wrong_also_where_a_problem_has_no_others() -> None:
    draws = pl.DataFrame(
        [("a", "p1", False), ("a", "p1", False), ("e", "p1", True), ("e", "p2", True), ("n", "p3", False)],
        schema=["chain_id", "problem_id", "empty"],
        orient="row",
    )
    scored = pl.DataFrame({"chain_id": ["a"], "problem_id": ["p1"], "empty": [False], "score": [0.5]})
    frame, absent = repeat_drawn(scored, draws)
    assert absent == 1
    assert frame.select("problem_id", "empty", "score").rows() == [
        ("p1", False, 0.5),
        ("p1", False, 0.5),
        ("p1", True, None),
        ("p2", True, None),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scores={dir}/none.parquet"], ["there is no such file", "python -m pipeline score"]),
        (["scores={dir}/text.parquet"], ["text.parquet is not Parquet", "python -m pipeline score"]),
        (["scores={dir}/text.jsonl"], ["text.jsonl is not JSON lines"]),
        (["scores={dir}/empty.parquet"], ["empty.parquet has no rows"]),
        (["scores={dir}/other.parquet"], ["other.parquet has no column chain_id"]),
        (["scores={dir}/typed.jsonl"], ["typed.jsonl: column outcome holds String"]),
        (["scores={dir}/nameless.jsonl"], ["problem_id is empty in some rows"]),
        (["scores={dir}/unknown.parquet"], ["no problem has a known answer", "best=FILE"]),
        (["scores={dir}/prm.parquet", "outcome_scores={dir}/foreign.parquet"], ["has none of the chains"]),
        (["scores={dir}/prm.parquet", "n=[4,5]"], ["no problem has more than 3 candidates", "n=[3]"]),
        (["scores={dir}/prm.parquet", "n=[0]"], ["n=[0] is out of range"]),
        (["scores={dir}/prm.parquet", "n=[]"], ["n=[] is out of range"]),
        (["scores={dir}/prm.parquet", "run_dir={dir}"], ["does not contain a run"]),
        (["scores={dir}/prm.parquet", "best={dir}"], ["is a folder"]),
        (["scores={dir}/prm.parquet", "best={dir}/b", "out={dir}/none/o"], ["does not exist; create it"]),
        (["scores={dir}/prm.parquet", "out={dir}/prm.parquet"], ["out=", "prm.parquet, which is read"]),
        (
            ["scores=x", "outcome_scores={dir}/foreign.parquet", "best={dir}/foreign.parquet"],
            ["best=", "which is read"],
        ),
        (["scores={dir}/prm.parquet", "best={dir}/b", "out={dir}/b"], ["which is best: choose another out"]),
        (["scores={dir}/prm.parquet", "run_dir={dir}", "out={dir}/o"], ["out=", "which is read"]),
        (["scores={dir}/prm.parquet", "out=''"], ["out is empty"]),
        (["scores={dir}/prm.parquet", "aggregation=best"], ["aggregation", "last, min, product, mean"]),
        ([], ["give either scores=FILE", "or searches=[RUN,...]"]),
    ],
)
def test_what_cannot_be_used_is_reported_in_one_line(
    tmp_path: Path, capsys: Printed, arguments: list[str], said: list[str]
) -> None:
    written(tmp_path / "prm.parquet", ROWS)
    written(tmp_path / "empty.parquet", [])
    written(tmp_path / "foreign.parquet", [row("p1", "x", "7", 0.5)])
    written(tmp_path / "unknown.parquet", [row("p1", "x", "7", 0.5, gold=None)])
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    for name in ("text.parquet", "text.jsonl"):
        (tmp_path / name).write_text("hello")
    (tmp_path / "typed.jsonl").write_text(json.dumps(ROWS[0] | {"outcome": "perhaps"}) + "\n")
    (tmp_path / "nameless.jsonl").write_text(json.dumps(ROWS[0] | {"problem_id": None}) + "\n")
    assert select(*(argument.format(dir=tmp_path) for argument in arguments)) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    for words in said:
        assert words in shown
