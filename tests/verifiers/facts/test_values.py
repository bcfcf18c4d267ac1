"""Names in their normal form, and numbers with units: how two of them agree."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.facts.names import are_alike, normal_name
from pipeline.data.facts.quantities import MEASURES, Tolerance, fit_of, read_quantity, read_tolerance, split_tolerance
from pipeline.data.numbers import Fit


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
