"""Fact tables: their forms, their index, and what is said of those that cannot be used."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import InputError, StoreError
from pipeline.data.facts.index import index_of
from pipeline.data.facts.table import Table, contents_of
from pipeline.verifiers.facts.verifier import Facts
from pipeline.verifiers.registry import inputs_of, warnings_of
from pipeline.verifiers.settings import ArithmeticConfig, FactsConfig
from tests.verifiers.facts.tables import Row, facts, said, write_csv, write_jsonl, write_parquet, write_sqlite

ROWS: list[Row] = [
    {"entity": "Peru", "attribute": "capital", "value": "Lima"},
    {"entity": "Chile", "attribute": "capital", "value": "Santiago", "aliases": ["Republic of Chile"]},
]
SETTING = "verifier.table"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPVALUE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def indexes(cache: Path) -> list[Path]:
    return sorted((cache / "facts").glob("*.sqlite"))


def test_look_ups(tmp_path: Path) -> None:
    table = Table(str(write_parquet(tmp_path / "t.parquet", ROWS)), SETTING)
    assert table.entities("the republic of CHILE") == ["chile"]
    assert table.entities("Bolivia") == table.entities("") == table.entities("\ud800") == []
    assert table.attributes("Capital") == ["capital"]
    entry = table.entry("chile", "capital")
    assert entry is not None
    assert (entry.values, entry.other) == (("Santiago",), None)
    assert table.entry("chile", "mayor") is None
    assert table.same_entity("Chile", "Republic of Chile")
    assert not table.same_entity("Chile", "Peru")
    assert table.is_known_value("capital", "lima")
    table.close()


def test_an_index_is_made_once_for_each_state_of_a_table(tmp_path: Path, cache: Path) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", ROWS)
    assert said(facts(path), "The capital of Peru is Santiago.").verdict.value == "refuted"
    first = indexes(cache)
    before = first[0].stat().st_mtime_ns
    facts(path)
    assert indexes(cache) == first
    assert first[0].stat().st_mtime_ns == before
    write_jsonl(path, [*ROWS, {"entity": "Cuba", "attribute": "capital", "value": "Havana"}])
    os.utime(path, ns=(1, 1))
    assert said(facts(path), "The capital of Cuba is Havana.").verdict.value == "holds"
    assert len(indexes(cache)) == 1
    assert indexes(cache) != first


def test_several_that_need_an_index_at_once_share_one(tmp_path: Path, cache: Path) -> None:
    path = write_csv(tmp_path / "t.csv", ROWS * 500)
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(lambda _: index_of(str(path), SETTING), range(8)))
    assert list(made) == indexes(cache)
    assert {each.suffix for each in (cache / "facts").iterdir()} == {".sqlite", ".lock"}


def test_equal_rows_and_spellings_are_no_contradiction(tmp_path: Path) -> None:
    rows = [
        *ROWS,
        {"entity": "PERU", "attribute": "the capital", "value": "lima "},
        {"entity": "K2", "attribute": "height", "value": "8,611", "unit": "m"},
        {"entity": "K2", "attribute": "height", "value": "8611 m"},
        {"entity": "Peru", "attribute": "rivers", "value": "Amazon|Ucayali"},
        {"entity": "Peru", "attribute": "rivers", "value": ["Ucayali", "Amazon"]},
    ]
    found = contents_of(str(write_jsonl(tmp_path / "t.jsonl", rows)), SETTING)
    assert (found.rows, found.contradictions, found.example) == (7, 0, "")


def test_contradictions_are_counted_with_an_example(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", [*ROWS, {"entity": "Peru", "attribute": "Capital", "value": "Cusco"}])
    settings = FactsConfig(table=str(path))
    (warning,) = warnings_of(settings)
    assert warning == (
        f"verifier.table: {path} contradicts itself in 1 key, such as: Peru: capital is Lima, and also Cusco. Claims about "
        "them are unknown: correct the rows, or write several right values into one row"
    )
    found = said(Facts(settings), "The capital of Peru is Lima.")
    assert (found.verdict.value, found.evidence) == ("unknown", "in the table, Peru: capital is Lima, and also Cusco")
    assert warnings_of(FactsConfig()) == []
    assert warnings_of(ArithmeticConfig()) == []


def test_the_content_of_a_table_is_an_input_of_a_check(tmp_path: Path) -> None:
    one, same = (write_jsonl(tmp_path / f"{name}.jsonl", ROWS) for name in "ab")
    other = write_jsonl(tmp_path / "c.jsonl", ROWS[:1])
    digests = [inputs_of(FactsConfig(table=str(path)))["table_sha256"] for path in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
    assert inputs_of(ArithmeticConfig()) == {}


WRONG: dict[str, tuple[list[Any], str]] = {
    "no key column": ([{"entity": "Peru", "value": "Lima"}], "has no column 'attribute'"),
    "no value column": (
        [{"entity": "Peru", "attribute": "capital", "worth": "Lima"}],
        "It has entity, attribute, worth",
    ),
    "no rows": ([], "has no rows"),
    "an empty entity": ([*ROWS, {"entity": " ", "attribute": "capital", "value": "Lima"}], "row 3 has no entity"),
    "an empty value": ([{"entity": "Peru", "attribute": "capital", "value": None}], "row 1 has no value"),
    "a value that is true": ([{"entity": "Peru", "attribute": "capital", "value": True}], "of type bool"),
    "a value that is an object": ([{"entity": "Peru", "attribute": "capital", "value": {"a": 1}}], "of type dict"),
    "a tolerance in words": ([{**ROWS[0], "tolerance": "little"}], "the tolerance 'little' is no number and no share"),
    "a long name": ([{**ROWS[0], "entity": "P" * 3_000}], "entity has more than 2,000 characters"),
    "a line that is a list": ([["Peru"]], "line 1, is not an object"),
}


@pytest.mark.parametrize(("rows", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_table_is_refused_with_its_place(tmp_path: Path, rows: list[Any], message: str, cache: Path) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", rows)
    with pytest.raises(InputError, match=r"verifier\.table: ") as error:
        Facts(FactsConfig(table=str(path)))
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert indexes(cache) == []


def test_other_wrong_files(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no parquet")
    (tmp_path / "text.db").write_text("no data base, but long enough to be one" * 100)
    (tmp_path / "text.jsonl").write_text("{")
    (tmp_path / "text.txt").write_text("")
    (tmp_path / "latin.csv").write_bytes(b"entity,attribute,value\nP\xe9ru,capital,Lima\n")
    for name, message in {
        "text.parquet": "cannot be read: ",
        "text.db": "cannot be read: file is not a database",
        "text.jsonl": "line 1, is not JSON",
        "text.txt": "must end in one of .parquet .sqlite",
        "latin.csv": "cannot be read: 'utf-8' codec",
        "missing.parquet": "cannot be read: No such file or directory",
    }.items():
        with pytest.raises(InputError) as error:
            facts(tmp_path / name)
        assert message in str(error.value)
        assert f"verifier.table: {tmp_path / name}" in str(error.value)
    with pytest.raises(ValueError, match=r"verifier\.table"):
        FactsConfig(table=" ")


def test_tables_of_a_data_base(tmp_path: Path) -> None:
    other = write_sqlite(tmp_path / "one.db", ROWS, table="whatever")
    assert contents_of(str(other), SETTING).rows == 2
    with closing(sqlite3.connect(other)) as base, base:
        base.execute("CREATE TABLE second (a)")
    with pytest.raises(InputError, match="has 2 tables, and none is called facts"):
        facts(other)
    with closing(sqlite3.connect(other)) as base, base:
        base.execute("CREATE VIEW facts AS SELECT entity, attribute, value FROM whatever")
    assert contents_of(str(other), SETTING).rows == 2


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEPVALUE_CACHE", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="set STEPVALUE_CACHE"):
        facts(write_jsonl(tmp_path / "t.jsonl", ROWS))
