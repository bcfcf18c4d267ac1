"""Names in their normal form, and numbers with units: how two of them agree."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError, StoreError
from pipeline.data.facts.index import index_of
from pipeline.data.facts.names import are_alike, normal_name
from pipeline.data.facts.quantities import MEASURES, Tolerance, fit_of, read_quantity, read_tolerance, split_tolerance
from pipeline.data.facts.table import Table, contents_of
from pipeline.data.numbers import Fit
from pipeline.verifiers.facts.verifier import Facts
from pipeline.verifiers.registry import inputs_of, warnings_of
from pipeline.verifiers.settings import ArithmeticConfig, FactsConfig
from tests.verifiers.facts.tables import Row, facts, said, write_csv, write_jsonl, write_parquet, write_sqlite


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The Côte d’Ivoire", "cote d'ivoire"),
        ("  the   United\tStates ", "united states"),
        ("U.S.", "us"),
        ("St. Louis", "st louis"),
        ("Washington, D.C.", "washington dc"),
        ("Moby-Dick", "moby dick"),
        ("“Hamlet”", "hamlet"),
        ("İstanbul", "istanbul"),
        ("Straße", "strasse"),
        ("北京", "北京"),
        ("H₂O", "h2o"),
        ("3.14", "3.14"),
        ("the", "the"),
        ("...", ""),
        ("x" * 401, ""),
    ],
)
def test_normal_names(text: str, name: str) -> None:
    assert normal_name(text) == name


@given(st.text(max_size=60))
def test_a_normal_name_is_its_own(text: str) -> None:
    name = normal_name(text)
    assert normal_name(name) == name
    assert normal_name(f"  The {name} ") == normal_name(f"the {name}")


def test_names_that_may_be_spellings_of_each_other() -> None:
    for one, other in (
        ("delhi", "new delhi"),
        ("united states of america", "usa"),
        ("saint petersburg", "sankt petersburg"),
    ):
        assert are_alike(one, other)
        assert are_alike(other, one)
    assert not are_alike("lima", "santiago")
    assert not are_alike("sydney", "canberra")


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("8,848.86 m", Fraction("8848.86"), "m"),
        ("-38.8 °C", Fraction("-38.8"), "°c"),
        ("−5", Fraction(-5), ""),
        ("7.9 million", Fraction(7_900_000), ""),
        ("$5", Fraction(5), "$"),
        ("1.08 × 10^8 km", Fraction(108_000_000), "km"),
        ("3e8 m/s", Fraction(3 * 10**8), "m/s"),
        ("357,022 km²", Fraction(357_022), "km2"),
        ("eight", Fraction(8), ""),
        ("44 BC", Fraction(44), "bc"),
        ("1,000 square kilometers", Fraction(1000), "square kilometers"),
    ],
)
def test_numbers_are_read(text: str, number: Fraction, unit: str) -> None:
    found = read_quantity(text)
    assert found is not None
    assert (found.number, found.unit) == (number, unit)


@pytest.mark.parametrize(
    "text", ["", "Lima", "H2O", "12th", "1,00", "1e999", "9" * 100, "1.2.3", "$5 m", "tenfold", "5, 6"]
)
def test_what_is_no_number_is_not_read(text: str) -> None:
    assert read_quantity(text) is None


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", *sorted(MEASURES)[:40]]))
def test_a_number_is_equal_to_itself(number: int, unit: str) -> None:
    quantity = read_quantity(f"{number:,} {unit}")
    assert quantity is not None
    assert fit_of(quantity, quantity) is Fit.EQUAL


@given(st.integers(1, 10**6), st.integers(2, 50))
def test_a_number_that_is_far_off_is_apart(number: int, factor: int) -> None:
    one, other = read_quantity(f"{number} m"), read_quantity(f"{number * factor + 1}.5 m")
    assert one is not None
    assert other is not None
    assert fit_of(other, one) is Fit.APART


@given(st.text(max_size=70))
def test_any_text_is_read_or_not(text: str) -> None:
    assert (read_quantity(text) is None) in (True, False)
    assert split_tolerance(text)[1].size >= 0


FITS = [
    ("60 minutes", "1 hour", "", Fit.EQUAL),
    ("29,029 ft", "8848.86 m", "", Fit.DOUBTFUL),
    ("29,032 ft", "8848.86 m", "1", Fit.EQUAL),
    ("212 °F", "100 °C", "", Fit.EQUAL),
    ("373.15 K", "100 °C", "", Fit.EQUAL),
    ("1 mile", "1.609344 km", "", Fit.EQUAL),
    ("1 km2", "1000000 m2", "", Fit.EQUAL),
    ("36 km/h", "10 m/s", "", Fit.EQUAL),
    ("1945", "1946", "", Fit.APART),
    ("1900", "1946", "", Fit.APART),
    ("3.14", "3.14159", "", Fit.DOUBTFUL),
    ("3.15", "3.14159", "", Fit.DOUBTFUL),
    ("3.2", "3.14159", "", Fit.DOUBTFUL),
    ("3.5", "3.14159", "", Fit.APART),
    ("5 kg", "5 m", "", Fit.DOUBTFUL),
    ("9", "5 m", "", Fit.DOUBTFUL),
    ("9 m", "5", "", Fit.DOUBTFUL),
    ("9 apples", "5 pears", "", Fit.DOUBTFUL),
    ("101", "100", "1%", Fit.EQUAL),
    ("102", "100", "1%", Fit.APART),
    ("1.2 million", "1,234,567", "", Fit.DOUBTFUL),
]


@pytest.mark.parametrize(("claimed", "known", "tolerance", "fit"), FITS)
def test_how_numbers_agree(claimed: str, known: str, tolerance: str, fit: Fit) -> None:
    one, other = read_quantity(claimed), read_quantity(known)
    assert one is not None
    assert other is not None
    assert fit_of(one, other, read_tolerance(tolerance) or Tolerance()) is fit


def test_tolerances() -> None:
    assert read_tolerance("±2") == Tolerance(Fraction(2))
    assert read_tolerance(" 1.5 % ") == Tolerance(Fraction("0.015"), relative=True)
    assert read_tolerance("1e-3") == Tolerance(Fraction("0.001"))
    assert read_tolerance("about") is None
    assert split_tolerance("8849 ± 5 m") == ("8849 m", Tolerance(Fraction(5)))
    assert split_tolerance("3.7 ± 1%") == ("3.7", Tolerance(Fraction("0.01"), relative=True))
    assert split_tolerance("the ± sign") == ("the ± sign", Tolerance())


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
