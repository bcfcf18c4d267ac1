"""Small files that stand for much memory are refused with the row that is at fault, and cost little."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import InputError
from pipeline.core.records import Reject, RejectReason
from pipeline.data import parquet, parquet_child
from pipeline.data.rows import input_files, read_rows
from tests.checkout import ROOT

pytestmark = pytest.mark.slow

READ = """
import resource, sys
from pipeline.core.errors import InputError
from pipeline.data.rows import read_rows
rows, said = 0, ""
try:
    for location, row in read_rows(sys.argv[1], None):
        rows += isinstance(row, dict)
        said += "" if isinstance(row, dict) else f"{location.line} {row.reason.name}: {row.detail}"
except InputError as error:
    said = str(error)
# The figure of getrusage for this process itself begins with that of the process that started it.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
peak = own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(rows, peak // 1024, said)
"""
MOST_MIB = 1000


def rows_peak_and_message(path: Path) -> tuple[int, int, str]:
    """The rows that were read, the peak memory in MiB of the reader and its process, and what was said."""
    done = subprocess.run([sys.executable, "-c", READ, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)
    rows, peak, said = done.stdout.split(" ", 2)
    return int(rows), int(peak), said.strip()


def columns(**more: object) -> pa.Table:
    return pa.table({"problem": ["p", "q", "r"], "answer": ["1", "2", "3"], **more})


def stored_once(text: str, times: int) -> "pa.Array[Any]":
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([text]))


def one_list_of(values: "pa.Array[Any]") -> "pa.Array[Any]":
    """Three lists: one that is empty, one with all values, and another one that is empty."""
    return pa.ListArray.from_arrays(pa.array([0, 0, len(values), len(values)], pa.int32()), values)


BOMBS = {
    "a list with a text of 2 MB, 900 times": lambda: columns(steps=one_list_of(stored_once("a" * 2_000_000, 900))),
    "a list of 60 million nulls": lambda: columns(steps=one_list_of(pa.nulls(60_000_000, pa.int64()))),
}


@pytest.mark.parametrize(
    "name",
    ["a list with a text of 2 MB, 900 times", pytest.param("a list of 60 million nulls", marks=pytest.mark.nightly)],
)
def test_a_parquet_file_that_unpacks_to_gigabytes_is_an_error_that_names_the_row(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.parquet"
    # Without Arrow's own schema in the file, a reader unpacks the dictionaries.
    pq.write_table(BOMBS[name](), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 20_000
    rows, peak, said = rows_peak_and_message(path)
    assert f"data.path: {path} cannot be read: from row {rows + 1} on it takes more than" in said
    assert "write it again with shorter rows" in said
    assert peak < MOST_MIB


@pytest.mark.nightly
def test_rows_of_long_texts_that_are_stored_once_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"problem": stored_once("a" * 40_000_000, 30)})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    rows, peak, said = rows_peak_and_message(path)
    assert (rows, said) == (30, "")
    assert peak < MOST_MIB


def test_a_list_of_very_many_bits_is_a_reject(tmp_path: Path) -> None:
    """As objects of Python each bit takes a place in a list."""
    path = tmp_path / "a.parquet"
    pq.write_table(columns(steps=one_list_of(pa.nulls(20_000_000, pa.bool_()))), path, compression="zstd")
    rows, peak, said = rows_peak_and_message(path)
    assert rows == 2
    assert said.startswith("2 TOO_LARGE: The row takes 64")
    assert peak < MOST_MIB


def test_a_line_of_very_many_values_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "1"}\n{"id": [' + b"{}," * 18_000_000 + b'{}]}\n{"id": "3"}\n')
    rows, peak, said = rows_peak_and_message(path)
    assert (rows, said) == (2, "2 TOO_LARGE: The line holds more than 2,000,000 values; shorten or split it.")
    assert peak < MOST_MIB


def test_a_line_of_wide_characters_is_read_within_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps({"id": "a" * 60_000_000 + "😀"}, ensure_ascii=False).encode() + b"\n")
    rows, peak, _ = rows_peak_and_message(path)
    assert rows == 1
    assert peak < MOST_MIB


def test_an_array_of_very_many_values_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b"{}," * 2_000_000 + b"{}]")
    with pytest.raises(InputError, match=r"array of more than 2,000,000 values; convert it to JSONL: jq"):
        list(read_rows(str(path), None))


def test_a_row_that_is_too_large_is_a_reject_between_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading process has its own constants, so the row is really that large."""
    path = tmp_path / "a.parquet"
    large = parquet_child.ROW_BYTES + 1
    pq.write_table(columns(note=["x", "y" * large, "z"]), path)
    found = [row for _, row in read_rows(str(path), None)]
    assert [isinstance(row, Reject) for row in found] == [False, True, False]
    reject = found[1]
    assert isinstance(reject, Reject)
    assert (reject.location.line, reject.reason) == (2, RejectReason.TOO_LARGE)
    assert "of memory; shorten or split it" in reject.detail


def test_a_reader_that_is_killed_is_an_error_and_the_rows_before_it_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(columns(), path)
    monkeypatch.setattr(parquet, "CHILD_BYTES", 1)  # not even pyarrow can be loaded
    with pytest.raises(InputError, match="from row 1 on it takes more than 1 bytes"):
        list(read_rows(str(path), None))


def test_a_reader_that_is_killed_within_a_row_is_started_again_and_no_row_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"{number}" * 500_000 for number in range(9)]
    pq.write_table(pa.table({"problem": texts}), path)
    with parquet.ParquetReader() as reader:
        rows = reader.rows(path)
        first = next(rows)
        assert reader._process is not None
        reader._process.kill()
        assert [first, *rows] == [{"problem": text} for text in texts]


def test_maps_and_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    pairs = [[("a", [1, 2]), ("b", None)], [], None]
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet"))
    table = columns(pairs=pa.array(pairs, kind), lists=pa.array([[pair] for pair in pairs], pa.list_(kind)))
    with path.open("wb") as file:
        pq.write_table(table, file)
    with parquet.ParquetReader() as reader:
        assert [row["pairs"] for row in reader.rows(path) if isinstance(row, dict)] == pairs


def test_no_process_is_left_when_rows_are_not_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(columns(), path)
    reader = parquet.ParquetReader()
    with reader:
        next(iter(reader.rows(path)))
        process = reader._process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None


def test_the_reading_process_has_no_keys_and_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "OPENAI_API_KEY", "TEAM_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = tmp_path / "a.parquet"
    pq.write_table(columns(), path)
    with parquet.ParquetReader() as reader:
        next(iter(reader.rows(path)))
        assert reader._process is not None
        environment = Path(f"/proc/{reader._process.pid}/environ").read_bytes()
    assert b"sk-secret" not in environment
    assert f"TMPDIR={tmp_path}".encode() in environment
    assert b"ARROW_DEFAULT_MEMORY_POOL=system" in environment


def test_two_stars_do_not_follow_links_in_circles(tmp_path: Path) -> None:
    """Two links to their own folder would be 2**40 paths to each file."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for name in ("one", "two"):
        (inner / name).symlink_to(tmp_path)
    for folder in (tmp_path, inner, tmp_path / ".hidden"):
        folder.mkdir(exist_ok=True)
        (folder / "rows.jsonl").write_text('{"id": "1"}\n')
    expected = [tmp_path / "a/b/rows.jsonl", tmp_path / "rows.jsonl"]
    assert input_files(f"{tmp_path}/**/*.jsonl") == expected
    assert input_files(f"{tmp_path}/**/b/*.jsonl") == expected[:1]
    assert input_files(f"{tmp_path}/**") == expected
    assert input_files(f"{tmp_path}/a/**/b/**/*.jsonl") == expected[:1]


def test_two_stars_begin_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "a[1]" / "rows.jsonl").write_text('{"id": "1"}\n')
    monkeypatch.chdir(tmp_path)
    assert input_files("**/*.jsonl") == [Path("a[1]/rows.jsonl")]


JUDGE = """
import sys
from pipeline.config.label import DataConfig
from pipeline.data.problems import read_row
from pipeline.data.rows import read_rows
for location, row in read_rows(sys.argv[1], None):
    print(read_row(row, location, DataConfig(path=sys.argv[1]), lambda text: None).detail)
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
"""
EMOJI = "\N{GRINNING FACE}"
"""With it, Python keeps a text with four bytes for each character."""


def wide_problem(folder: Path) -> Path:
    path = folder / "wide.parquet"
    pq.write_table(pa.table({"problem": [f" {'a' * 100_000_000}{EMOJI} "], "answer": ["1"]}), path)
    return path


def wide_steps(folder: Path) -> Path:
    path = folder / "wide.jsonl"
    steps = ["a" * 24 + EMOJI] * 1_900_000
    path.write_text(json.dumps({"problem": "p", "answer": "1", "steps": steps}, ensure_ascii=False), "utf-8")
    return path


@pytest.mark.parametrize("made", [wide_problem, wide_steps])
def test_a_row_that_is_too_large_is_refused_before_it_is_copied(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    path = made(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    detail, peak = done.stdout.splitlines()
    assert "more than data.max_chars=100000" in detail
    assert int(peak) < MOST_MIB


def test_metadata_that_cannot_be_read_are_named_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(columns(), path)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[: -8 - size] + b"\xff" * size + content[-8:])
    with pytest.raises(
        InputError, match="cannot be read: the metadata at its end are damaged, or larger than Arrow reads"
    ):
        list(read_rows(str(path), None))


def test_an_array_with_a_very_long_integer_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"id": ' + b"9" * 5000 + b"}]")
    with pytest.raises(InputError, match=r"an integer of more than 4,300 digits; write it as a text or shorten it$"):
        list(read_rows(str(path), None))
