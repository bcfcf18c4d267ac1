"""The verifier of facts: what it reads, what it leaves alone, and that it is never wrong about a table."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verifiers.base import MOST_EVIDENCE, UNKNOWN, Covers, StepVerdict, Verifier
from tests.verifiers.facts.tables import (
    Row,
    facts,
    made_up_rows,
    planted_claims,
    said,
    write_csv,
    write_jsonl,
    write_parquet,
    write_sqlite,
)
from tests.verifiers.facts.templates import DEVELOPMENT, HELD_OUT, LOOK_ALIKES
from tests.verifiers.steps import finding

pytestmark = pytest.mark.slow

CLAIMS = 2_000
LEAST_SAID = 0.9

ROWS: list[Row] = [
    {"entity": "Peru", "attribute": "capital", "value": "Lima", "source": "an atlas", "attribute_aliases": ["capital city"]},
    {"entity": "Chile", "attribute": "capital", "value": "Santiago"},
    {"entity": "United States", "attribute": "capital", "value": "Washington, D.C.", "aliases": ["USA", "U.S.", "America"]},
    {"entity": "Côte d'Ivoire", "attribute": "capital", "value": "Yamoussoukro", "aliases": ["Ivory Coast"]},
    {"entity": "India", "attribute": "capital", "value": "New Delhi"},
    {"entity": "Georgia", "attribute": "capital", "value": "Tbilisi"},
    {"entity": "State of Georgia", "attribute": "capital", "value": "Atlanta", "aliases": ["Georgia"]},
    {"entity": "Belgium", "attribute": "official language", "value": ["Dutch", "French", "German"]},
    {"entity": "Spain", "attribute": "official language", "value": "Spanish"},
    {"entity": "Nowhere", "attribute": "capital", "value": "Here"},
    {"entity": "nowhere", "attribute": "Capital", "value": "There"},
    {"entity": "Mount Everest", "attribute": "height", "value": "8848.86", "unit": "m", "tolerance": "1"},
    {"entity": "K2", "attribute": "height", "value": "8611", "unit": "m"},
    {"entity": "Bolivia", "attribute": "population", "value": "12 million", "tolerance": "5%"},
    {"entity": "leap year", "attribute": "number of days", "value": 366},
    {"entity": "War and Peace", "attribute": "author", "value": "Leo Tolstoy", "aliases": ["Tolstoy's War and Peace"]},
    {"entity": "Hamlet", "attribute": "author", "value": "William Shakespeare"},
    {"entity": "Leo Tolstoy", "attribute": "year of birth", "value": "1828", "aliases": ["Tolstoy"]},
    {"entity": "Peru's flag", "attribute": "number of colours", "value": "2"},
]  # fmt: skip


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    return facts(write_jsonl(tmp_path_factory.mktemp("facts") / "facts.jsonl", ROWS))


HOLDS = (
    "The capital of Peru is Lima.", "The capital city of Peru was Lima.",
    "So, the CAPITAL of  the  USA is Washington D.C.", "Ivory Coast's capital is Yamoussoukro.",
    "Cote d’Ivoire's capital is Yamoussoukro, and so on.",
    "The capital of Peru is Lima and the capital of Chile is Santiago.", "The official language of Belgium is French.",
    "Mount Everest has a height of 8,849 m.", "The height of Mount Everest is 29,032 ft.",
    "The height of Mount Everest is about 8.85 km.", "The population of Bolivia is 11.8 million.",
    "The number of days in a leap year is 366.", "The number of days in a leap year is 366 days.",
    "The author of War and Peace is Leo Tolstoy.", "War and Peace's author is Tolstoy.",
    "The height of K2 is approximately 8,600 m.", "Peru's flag's number of colours is two.",
)  # fmt: skip
REFUTED = (
    ("The capital of Peru is Santiago.", "Peru: capital is Lima, not Santiago (an atlas)"),
    ("Then the capital city of Chile is Lima.", "Chile: capital is Santiago, not Lima"),
    ("The capital of Peru is Lima, and the capital of Chile is Tbilisi.", "Chile: capital is Santiago, not Tbilisi"),
    ("Mount Everest has a height of 8,611 m.", "Mount Everest: height is 8848.86 m, not 8,611 m"),
    ("The height of K2 is 7,000 m.", "K2: height is 8611 m, not 7,000 m"),
    ("The height of K2 is about 5 km.", "K2: height is 8611 m, not 5 km"),
    ("The population of Bolivia is 13 million.", "Bolivia: population is 12 million, not 13 million"),
    ("A leap year has a number of days of 365.", "leap year: number of days is 366, not 365"),
    ("The author of Hamlet is Tolstoy.", ""),
    ("The author of Hamlet is Leo Tolstoy.", "Hamlet: author is William Shakespeare, not Leo Tolstoy"),
    ("Tolstoy's year of birth is 1829.", "Leo Tolstoy: year of birth is 1828, not 1829"),
)
DOUBTFUL = (
    "", "The capital of Peru is not Lima.", "The capital of Peru isn't Santiago.",
    "Is the capital of Peru Santiago? The capital of Peru is Santiago?", "Suppose the capital of Peru is Santiago.",
    "If the capital of Peru is Santiago, then we go there.", "The capital of Peru was Santiago.",
    "The capital of Peru is Sydney.", "The capital of Peru is a large city.", "The capital of Peru is Limaa.",
    "The capital of India is Delhi.", "The capital of Atlantis is Lima.", "The mayor of Peru is Santiago.",
    "The capital of Georgia is Lima.", "The official language of Belgium is Spanish.", "The capital of Nowhere is Lima.",
    "The capital of Peru is Santiago or Lima.", "The capital of Peru is Lima's neighbour Santiago.",
    "Ann thinks that the capital of Peru is Santiago.", "The population of the capital of Peru is Santiago.",
    "The height of K2 is 8,600 m.", "The height of K2 is 8,612 m.", "The height of K2 is 7000.", "The height of K2 is 7000 kg.",
    "The height of K2 is 7,000 m lower.", "The height of K2 is 8,611 m minus 200 m.",
    "The number of days in a leap year is 366 times 2.", "The number of days in a leap year is 12 months.",
    "The capital of Peru is Santiago. Wait, that is wrong.", "The capital of Peru is Santiago in this story.",
    "The capital of Peru is Lima. That is false.", "FALSE. The capital of Peru is Santiago.",
    "True or false? The capital of Peru is Lima.", "The capital of Peru is Santiago. No.",
    "```\nThe capital of Peru is Santiago.\n```", "The height of K2 is 8.611 m.", "The height of K2 is 7,000 m (at the col).",
    "The capital of Peru is Santiago, which is absurd.",
)  # fmt: skip


@pytest.mark.parametrize("step", HOLDS)
def test_what_the_table_has_holds(verifier: Verifier, step: str) -> None:
    found = said(verifier, step)
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART), found
    assert found.evidence


@pytest.mark.parametrize(("step", "evidence"), [case for case in REFUTED if case[1]])
def test_what_the_table_has_otherwise_is_refuted_with_its_words(verifier: Verifier, step: str, evidence: str) -> None:
    found = said(verifier, step)
    assert (found.verdict, found.covers, found.evidence) == (StepVerdict.REFUTED, Covers.PART, evidence)


@pytest.mark.parametrize("step", DOUBTFUL)
def test_what_is_doubtful_is_unknown(verifier: Verifier, step: str) -> None:
    assert said(verifier, step).verdict is StepVerdict.UNKNOWN, said(verifier, step)


def test_a_contradiction_of_the_table_is_the_evidence_of_not_knowing(verifier: Verifier) -> None:
    assert (
        said(verifier, "The capital of Nowhere is Here.").evidence
        == "in the table, Nowhere: capital is Here, and also There"
    )


def test_a_new_name_refutes_only_if_the_settings_say_so(tmp_path: Path) -> None:
    table = write_jsonl(tmp_path / "facts.jsonl", ROWS)
    step = "The capital of Peru is Sydney."
    assert said(facts(table), step) == UNKNOWN
    asked = facts(table, refute_new_names=True)
    assert said(asked, step).evidence == "Peru: capital is Lima, not Sydney (an atlas)"
    for doubtful in (
        "The capital of Peru is a city.",
        "The capital of Peru is large.",
        "The capital of India is Delhi.",
    ):
        assert said(asked, doubtful) == UNKNOWN


def test_what_the_problem_states_or_supposes_is_left_alone(verifier: Verifier) -> None:
    step = "The capital of Peru is Santiago."
    assert said(verifier, step, problem="What is the capital of Peru?").verdict is StepVerdict.REFUTED
    for problem in (
        "The capital of Peru is Santiago. How far is it?",
        "Imagine that countries swap.",
        "Which one is false?",
    ):
        assert said(verifier, step, problem=problem) == UNKNOWN
    assert said(verifier, step, earlier=("Suppose that Chile had won.",)) == UNKNOWN


def test_a_long_step_is_unknown(tmp_path: Path) -> None:
    asked = facts(write_jsonl(tmp_path / "facts.jsonl", ROWS), most_characters=20)
    assert said(asked, "The capital of Peru is Santiago.") == UNKNOWN


def test_many_claims_have_short_evidence(verifier: Verifier) -> None:
    found = said(verifier, "The capital of Peru is Santiago. The height of K2 is 1 m. " * 40)
    assert found.verdict is StepVerdict.REFUTED
    assert len(found.evidence) < MOST_EVIDENCE


@pytest.mark.parametrize("write", [write_parquet, write_sqlite, write_csv, write_jsonl])
def test_all_forms_of_a_table_say_the_same(tmp_path: Path, write: Any) -> None:
    suffix = {write_parquet: "parquet", write_sqlite: "sqlite", write_csv: "csv", write_jsonl: "jsonl"}[write]
    rows = [{**row, "value": row["value"] if isinstance(row["value"], str) else "|".join(map(str, row["value"]))}
            for row in ROWS if not isinstance(row["value"], int)]  # fmt: skip
    asked = facts(write(tmp_path / f"facts.{suffix}", rows))
    assert (
        said(asked, "The capital of the U.S. is Lima.").evidence
        == "United States: capital is Washington, D.C., not Lima"
    )
    assert said(asked, "The official language of Belgium is German.").verdict is StepVerdict.HOLDS
    assert said(asked, "The height of K2 is 7,000 m.").verdict is StepVerdict.REFUTED


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Verifier, list[Row]]:
    rows = made_up_rows(300, seed=28)
    return facts(write_parquet(tmp_path_factory.mktemp("facts") / "facts.parquet", rows)), rows


@pytest.mark.parametrize("templates", [DEVELOPMENT, HELD_OUT], ids=["development", "held-out"])
def test_planted_claims_are_never_judged_wrongly(
    made_up: tuple[Verifier, list[Row]], templates: tuple[str, ...]
) -> None:
    verifier, rows = made_up
    found: Counter[tuple[str, str]] = Counter()
    for claim in planted_claims(rows, templates, CLAIMS, seed=28):
        found["right", said(verifier, claim.right).verdict.value] += 1
        found["wrong", said(verifier, claim.wrong).verdict.value] += 1
    assert found["right", "refuted"] == found["wrong", "holds"] == 0
    assert found["right", "holds"] >= LEAST_SAID * CLAIMS, found
    assert found["wrong", "refuted"] >= LEAST_SAID * CLAIMS, found


def test_sentences_that_only_look_like_claims_are_never_refuted(made_up: tuple[Verifier, list[Row]]) -> None:
    verifier, rows = made_up
    for claim in planted_claims(rows, LOOK_ALIKES, CLAIMS, seed=29):
        for step in (claim.right, claim.wrong):
            assert said(verifier, step).verdict is not StepVerdict.REFUTED, step
        assert said(verifier, claim.wrong).verdict is StepVerdict.UNKNOWN, claim.wrong


@given(st.text(max_size=80), st.text(max_size=40), st.text(max_size=40))
def test_any_text_gets_an_answer(one: str, other: str, value: str) -> None:
    for step in (
        one,
        f"The {one} of {other} is {value}.",
        f"{other}'s capital is {value}",
        f"Peru has a {one} of {value}",
    ):
        assert finding("facts", step).verdict is not None
