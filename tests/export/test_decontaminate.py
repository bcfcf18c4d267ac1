"""A problem is found by a run of `ngram` words in any layout; lists of problems are read completely or not at all."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.core.records import RowLocation
from pipeline.export.decontaminate import Contamination, Listed, contamination, words
from pipeline.export.settings import DecontaminateConfig

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


PROBLEMS = ["What is 1 + 1?", "What is 2 * 2?"]


def write(folder: Path, name: str) -> Path:
    path = folder / name
    rows = [{"meta": {"question": problem}} for problem in PROBLEMS]
    match path.suffix:
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case ".json":
            path.write_text(json.dumps(rows))
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case ".txt":
            path.write_text("\ufeff" + "\n\n".join(PROBLEMS), encoding="utf-8")
    return path


def place(path: Path, problem: str, column: str = "meta.question") -> RowLocation | None:
    match = contamination(DecontaminateConfig(paths=[str(path)], column=column)).contaminated_by(problem)
    return match.listed.location if match else None


@pytest.mark.parametrize(("name", "second"), [("a.jsonl", 2), ("a.json", 2), ("a.parquet", 2), ("a.txt", 3)])
def test_every_kind_of_file(tmp_path: Path, name: str, second: int) -> None:
    path = write(tmp_path, name)
    assert [place(path, problem) for problem in PROBLEMS] == [
        RowLocation(file=str(path), line=1),
        RowLocation(file=str(path), line=second),
    ]
    assert place(path, "What is 3 * 3?") is None


def test_a_folder_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder", "b.jsonl")
    text = tmp_path / "c.txt"
    text.write_text("Why?\n")
    found = contamination(DecontaminateConfig(paths=[str(tmp_path / "folder"), str(text)], column="meta.question"))
    assert found.contaminated_by("why")
    assert found.contaminated_by(PROBLEMS[0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            b'{"question": "x", "answer": 1}',
            r"row 1: the column 'problem' holds no text.*has: question, answer$",
        ),
        ("a.jsonl", b'{"problem": "x"}\n{"problem": null}', "row 2: the column 'problem' holds no text"),
        ("a.jsonl", b'{"problem": "x"}\n{', "row 2: "),
        ("a.json", b"[1", r"begins like a JSON array"),
        ("a.tsv", b"problem", "must end in one of .jsonl"),
        ("a.txt", b"good\n\xff\n", "line 2 is not UTF-8"),
        ("a.parquet", b"PAR1", "cannot be read"),
        ("a.txt", b"\n", "lists no problem"),
    ],
)
def test_what_cannot_be_read_as_a_whole_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        contamination(DecontaminateConfig(paths=[str(path)]))
    assert str(refused.value).startswith(f"decontaminate.paths: {path}")


@pytest.mark.parametrize("name", ["none.jsonl", "none.txt"])
def test_a_path_that_leads_nowhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"decontaminate\.paths: .*none"):
        contamination(DecontaminateConfig(paths=[str(tmp_path / name)]))


def test_a_data_set_on_the_hub_is_named_by_its_setting() -> None:
    with pytest.raises(InputError, match=r"decontaminate\.paths: hf:/// is not of the form"):
        contamination(DecontaminateConfig(paths=["hf:///"]))
