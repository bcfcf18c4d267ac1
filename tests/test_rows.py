"""Files of every kind give the same rows; damage is a reject for a row and an error for a file."""

import gzip
import hashlib
import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core import json_size
from pipeline.core.errors import InputError
from pipeline.core.json_size import has_too_many_values
from pipeline.core.records import Reject, RejectReason, RowLocation
from pipeline.data import jsonl, rows
from pipeline.data.rows import input_digest, input_files, lasting_path, read_rows

ROWS: list[dict[str, object]] = [{"id": str(i), "problem": f"é{i}?", "steps": ["a", "b"]} for i in range(200)]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


def write(path: Path) -> Path:
    name = path.name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=70, write_page_checksum=True)
    elif name.endswith(".arrow"):
        table = pa.Table.from_pylist(ROWS)
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table, max_chunksize=150)
    elif name.endswith(".json"):
        path.write_text(json.dumps(ROWS))
    else:
        path.write_bytes(
            gzip.compress(JSONL) if name.endswith(".gz") else zstd(JSONL) if name.endswith(".zst") else JSONL
        )
    return path


def read(path: Path | str, limit: int | None = None) -> list[dict[str, object] | Reject]:
    return [row for _, row in read_rows(str(path), limit)]


def rejects(path: Path, content: bytes) -> list[tuple[int, RejectReason, str]]:
    path.write_bytes(content)
    found = list(read_rows(str(path), None))
    assert all(row.location == place for place, row in found if isinstance(row, Reject))
    return [(place.line, row.reason, row.detail) for place, row in found if isinstance(row, Reject)]


NAMES = ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.json", "a.parquet", "a.arrow", "A.JSONL.GZ"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_rows_and_places(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name)
    if name == "A.JSONL.GZ":
        path.write_bytes(gzip.compress(JSONL))
    places, found = zip(*read_rows(str(path), None), strict=True)
    assert list(found) == ROWS
    assert list(places) == [RowLocation(file=str(path), line=number) for number in range(1, len(ROWS) + 1)]
    assert read(path, 3) == ROWS[:3]


def test_compressed_files_may_have_several_parts(tmp_path: Path) -> None:
    for name, parts in (("a.jsonl.gz", gzip.compress(JSONL) * 2), ("a.jsonl.zst", zstd(JSONL) * 2)):
        (tmp_path / name).write_bytes(parts)
        assert read(tmp_path / name) == ROWS * 2


def test_a_folder_is_its_files_by_name_and_a_glob_what_it_matches(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.parquet", "c.jsonl.gz"):
        write(tmp_path / name)
    for name in (".hidden.jsonl", "README.md", "_SUCCESS"):
        (tmp_path / name).write_text("no rows")
    (tmp_path / "d.jsonl").mkdir()
    assert [file.name for file in input_files(str(tmp_path))] == ["a.parquet", "b.jsonl", "c.jsonl.gz"]
    assert [file.name for file in input_files(str(tmp_path / "*.jsonl*"))] == ["b.jsonl", "c.jsonl.gz"]
    assert read(tmp_path) == ROWS * 3
    assert read(tmp_path, 250) == (ROWS * 2)[:250]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a[1].jsonl"), 1) == ROWS[:1]


def test_the_sample_is_the_shipped_file() -> None:
    if rows.SAMPLE.is_file():
        assert input_files("sample") == [rows.SAMPLE]
        assert not [row for row in read("sample") if isinstance(row, Reject)]


def test_the_digest_is_that_of_the_bytes_in_order(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.jsonl"), write(tmp_path / "b.jsonl.gz")
    assert input_digest(str(first)) == hashlib.sha256(JSONL).hexdigest()
    assert input_digest(str(tmp_path)) == hashlib.sha256(JSONL + second.read_bytes()).hexdigest()


def test_blank_lines_and_a_byte_order_mark_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \r\n{"a": 2}')
    assert [(place.line, row) for place, row in read_rows(str(path), None)] == [(1, {"a": 1}), (4, {"a": 2})]
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf {"a": 1}\n{"a": 2}\n')
    assert read(path) == [{"a": 1}, {"a": 2}]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    for name, content in (
        ("a.jsonl", b""),
        ("a.jsonl.gz", gzip.compress(b"")),
        ("a.jsonl.zst", zstd(b"")),
        ("a.json", b"[]"),
    ):
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name) == []


@pytest.mark.parametrize(
    ("line", "reason", "words"),
    [
        (b'{"a": "\xff"}', "not_utf8", "Byte 7 of the line"),
        ('{"a": 1}'.encode("utf-16"), "not_utf8", "Byte 0 of the line"),
        (b'{"a": 1', "not_json", "column 8"),
        (b"{'a': 1}", "not_json", "column 2"),
        (b'{"a": 1} {"a": 2}', "not_json", "column 10"),
        (
            b'{"a": ' + b"9" * 5000 + b"}",
            "not_json",
            "an integer of more than 4,300 digits; write it as a text or shorten it",
        ),
        (b"[" * 200_000, "not_json", "nests lists or objects too deeply; nest them less deeply"),
        (b"[1]", "not_a_row", "list"),
        (b"null", "not_a_row", "object"),
    ],
)
def test_a_bad_line_is_rejected_and_the_others_read(tmp_path: Path, line: bytes, reason: str, words: str) -> None:
    line = line.replace(b"\n", b"")
    ((number, found, detail),) = rejects(tmp_path / "a.jsonl", b'{"a": 0}\n' + line + b'\n{"a": 3}\n')
    assert (number, found.value) == (2, reason)
    assert words in detail
    assert read(tmp_path / "a.jsonl")[::2] == [{"a": 0}, {"a": 3}]
    assert len(read(tmp_path / "a.jsonl", 2)) == 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_a_line_too_long_is_passed_over_without_being_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1000)
    fits = b'{"a": "' + b"x" * 991 + b'"}'
    content = fits + b"\n" + b"y" * 20_000_000 + b'\n{"a": 2}\n' + b"z" * 1001
    pack = {".gz": gzip.compress, ".zst": zstd}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(content))
    tracemalloc.start()
    found = list(read_rows(str(tmp_path / name), None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(place.line, row.reason if isinstance(row, Reject) else row) for place, row in found] == [
        (1, json.loads(fits)),
        (2, RejectReason.TOO_LARGE),
        (3, {"a": 2}),
        (4, RejectReason.TOO_LARGE),
    ]
    assert peak < 5_000_000


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.parquet", "a.json"])
@pytest.mark.parametrize("damage", ["cut", "junk"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, name: str, damage: str) -> None:
    path = write(tmp_path / name)
    path.write_bytes(path.read_bytes()[:-20] if damage == "cut" else b"[no such format" * 50)
    with pytest.raises(InputError, match=name):
        read(path)


def test_a_flipped_bit_in_parquet_is_an_error_where_the_file_has_checksums(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index("é150?".encode()) + 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.parquet"):
        read(path)


def test_parquet_text_that_is_not_utf8_rejects_its_row_only(tmp_path: Path) -> None:
    raw = pa.array([b"ok", b"\xff\xfe", b"ok"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"problem": text}), tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet")
    assert found[::2] == [{"problem": "ok"}, {"problem": "ok"}]
    assert isinstance(found[1], Reject)
    assert found[1].reason is RejectReason.NOT_UTF8


def test_a_large_json_array_is_refused_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_ARRAY_BYTES", 100)
    with pytest.raises(InputError, match="jq"):
        read(write(tmp_path / "a.json"))


def test_paths_that_lead_nowhere_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.tsv").write_text("a\tb\n")
    for path, words in (
        ("absent.jsonl", "there is no file or folder"),
        ("*.jsonl", "there is no file or folder"),
        ("empty", "contains no file"),
        ("a.tsv", "rename or convert"),
        ("*.tsv", "rename or convert"),
    ):
        for call in (input_files, input_digest, lambda path: read_rows(path, None)):
            with pytest.raises(InputError, match=words) as caught:
                call(str(tmp_path / path))
            assert path.removeprefix("*") in str(caught.value)


def test_csv_gives_texts_and_nulls_and_names_the_line_of_what_it_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('problem,answer,id\n"What is\n""1"" + 1, please?",2,\nx,y,z,too much\né,007,b\n', "utf-8-sig")
    (first, one), (second, refused), (third, last) = read_rows(str(path), None)
    assert (one, last) == (
        {"problem": 'What is\n"1" + 1, please?', "answer": "2", "id": None},
        {"problem": "é", "answer": "007", "id": "b"},
    )
    assert [place.line for place in (first, second, third)] == [2, 4, 5]
    assert isinstance(refused, Reject)
    assert "more fields than the header" in refused.detail
    for content in (b'problem,answer\n"x,1\n', b"problem,answer\n\xff,1\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a.csv cannot be read after line .*write it as CSV in UTF-8"):
            read(path)


def test_folders_are_read_with_those_in_them_but_for_runs_and_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.jsonl", "data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "run/labels/x.parquet",
                 ".cache/y.jsonl", "data/.z.jsonl"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / name)
    for name in ("run/run.json", "data/dataset_infos.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=f"is a run directory: for its chains give data.path={tmp_path}/run/labels"):
        input_files(str(tmp_path / "run"))
    assert len(input_files(str(tmp_path / "run" / "labels"))) == 1
    found = [str(file.relative_to(tmp_path)) for file in input_files(str(tmp_path))]
    assert found == ["b.jsonl", "data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"]
    write(tmp_path / "data" / "test-00000-of-00001.parquet")
    with pytest.raises(InputError, match="has the splits test, train: name one, such as data") as caught:
        input_files(str(tmp_path))
    assert len(input_files(str(caught.value).rpartition("data.path=")[2])) == 2


def test_a_list_of_paths_keeps_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [write(Path(name)) for name in ("b.parquet", "a.jsonl")]
    assert input_files("[b.parquet, 'a.jsonl', *.jsonl]") == files
    assert read("[b.parquet,a.jsonl]") == ROWS * 2
    with pytest.raises(InputError, match=r"there is no file or folder c\.csv"):
        input_files("[a.jsonl,c.csv]")
    for path in ("[]", "[hf://a/b,a.jsonl]"):
        with pytest.raises(InputError, match=r"must have files, folders or globs; hf:// stands alone"):
            input_files(path)
    assert lasting_path("[b.parquet,a.jsonl,sample]") == f"[{tmp_path}/b.parquet,{tmp_path}/a.jsonl,sample]"


def test_what_datasets_saves_to_disk_is_read_split_by_split(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    one = datasets.Dataset.from_list(ROWS)
    one.save_to_disk(tmp_path / "one")
    assert read(tmp_path / "one") == ROWS
    datasets.DatasetDict(train=one, test=one.select(range(3))).save_to_disk(tmp_path / "two")
    with pytest.raises(InputError, match=f"has the splits test, train.*data.path={tmp_path}/two/train$"):
        input_files(str(tmp_path / "two"))
    assert read(tmp_path / "two" / "test") == ROWS[:3]


class Hub(ModuleType):
    """Stands in for the package `datasets`: knows one data set, whose second row cannot be fetched when `torn`."""

    torn = False

    def load_dataset(
        self, name: str, config: str | None, *, split: str, streaming: bool
    ) -> Iterator[dict[str, object]]:
        if (name, config) != ("owner/set", "main") or not streaming:
            raise FileNotFoundError(f"{name} is not on the Hub")
        yield {"split": split, "n": 1}
        if self.torn:
            raise ConnectionError("gone")
        yield {"split": split, "n": 2}


def test_hub_rows_are_streamed_and_errors_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub("datasets")
    monkeypatch.setitem(sys.modules, "datasets", hub)
    assert list(read_rows("hf://owner/set/main:test", None)) == [
        (RowLocation(file="hf://owner/set/main:test", line=n), {"split": "test", "n": n}) for n in (1, 2)
    ]
    assert read("hf://owner/set/main", 1) == [{"split": "train", "n": 1}]
    assert input_files("hf://owner/set/main") == []
    with pytest.raises(InputError, match="owner/other is not on the Hub"):
        read("hf://owner/other")
    with pytest.raises(InputError, match="not of the form"):
        read("hf://a/b/c/d")
    hub.torn = True
    with pytest.raises(InputError, match="gone"):
        read("hf://owner/set/main")


def test_hub_without_the_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for call in (read, input_digest):
        with pytest.raises(InputError, match="pip install datasets"):
            call("hf://owner/set")


def test_the_hub_digest_changes_with_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Api:
        sha = "1"

        def dataset_info(self, name: str) -> "Api":
            if name != "owner/set":
                raise ConnectionError("no such set")
            return self

    module = ModuleType("huggingface_hub")
    monkeypatch.setattr(module, "HfApi", Api, raising=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    before = input_digest("hf://owner/set")
    assert before == input_digest("hf://owner/set") != input_digest("hf://owner/set:test")
    monkeypatch.setattr(Api, "sha", "2")
    assert before != input_digest("hf://owner/set")
    with pytest.raises(InputError, match="no such set"):
        input_digest("hf://owner/other")


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet='a,[{"\\é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(alphabet='b,"\\', max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)


def count(value: Any) -> int:
    """The values within a value. An empty list or object counts as one, for what it would hold."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return max(1, len(value)) + sum(map(count, inner))
    return 0


@given(VALUES, st.integers(0, 30), st.booleans())
def test_the_bound_is_the_number_of_values(value: Any, most: int, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_size, "MAX_VALUES", most)
        expected = count(value) > most
        assert has_too_many_values(text) is expected
        assert has_too_many_values(text.encode()) is expected


@given(st.text(alphabet='[]{},:"\\ a', max_size=40))
def test_texts_that_are_not_json_get_an_answer(text: str) -> None:
    assert has_too_many_values(text) is False


def test_commas_of_a_long_text_do_not_count() -> None:
    assert not has_too_many_values(json.dumps("," * 3_000_000))
    assert has_too_many_values("[" + "{}," * 3_000_000 + "{}]")
