"""Lists of problems are read from every type of file, completely or not at all."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import InputError
from pipeline.core.records import RowLocation
from pipeline.export.decontaminate import contamination
from pipeline.export.settings import DecontaminateConfig

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
        ("a.csv", b"problem", "must end in one of .jsonl"),
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
