"""Made-up fact tables, and steps with right and wrong claims about them."""

import csv
import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.verifiers.base import Finding, StepInContext, Verifier
from pipeline.verifiers.facts.verifier import Facts
from pipeline.verifiers.settings import FactsConfig

Row = dict[str, Any]

_BEGINS = "Bal|Dor|Fen|Gal|Hul|Ist|Jor|Kel|Lum|Mor|Nar|Ost|Per|Quil|Rav|Sel|Tor|Ulm|Vor|Wex|Yar|Zel"
_MIDDLES = "a|e|i|o|u|ai|or|en|il|an|ur|ath"
_ENDS = "dan|mar|ton|via|stad|wick|nia|burg|pol|ria|grad|ford|heim|dale"
NAMES = ("capital", "author", "currency", "national anthem", "patron saint")
NUMBERS = {"year of foundation": "", "height": "m", "area": "km²", "number of islands": "", "length": "km"}


def made_up_rows(count: int, seed: int) -> list[Row]:
    """Rows about `count` entities, each with two names and two numbers."""
    drawn = random.Random(seed)
    names = [f"{a}{b}{c}" for a in _BEGINS.split("|") for b in _MIDDLES.split("|") for c in _ENDS.split("|")]
    drawn.shuffle(names)
    fresh = iter(f"{a} {b}" for a, b in zip(names, names[len(names) // 2 :] + names, strict=False))
    rows: list[Row] = []
    for entity in names[:count]:
        rows += [
            {"entity": entity, "attribute": attribute, "value": next(fresh), "source": "made up"}
            for attribute in drawn.sample(NAMES, 2)
        ]
        for attribute in drawn.sample(sorted(NUMBERS), 2):
            unit = NUMBERS[attribute]
            value = drawn.randrange(1000, 2000) if "year" in attribute else drawn.randrange(101, 9999)
            rows.append({"entity": entity, "attribute": attribute, "value": str(value), "unit": unit})
    return rows


@dataclass(frozen=True, slots=True)
class Planted:
    """A step that states what a row says, and one that states another value."""

    right: str
    wrong: str
    row: Row


def planted_claims(rows: Sequence[Row], templates: Sequence[str], count: int, seed: int) -> list[Planted]:
    """Claims about rows in these templates, with `{attribute}`, `{entity}`, `{value}`."""
    drawn = random.Random(seed)
    found = []
    for number in range(count):
        row = drawn.choice(rows)
        template = templates[number % len(templates)]
        found.append(Planted(_claim(template, row, row["value"]), _claim(template, row, _wrong(row, rows, drawn)), row))
    return found


def _wrong(row: Row, rows: Sequence[Row], drawn: random.Random) -> str:
    if row["value"].isdigit():
        # What is off by less than one percent may be another measurement.
        return str(int(int(row["value"]) * drawn.choice([0.6, 0.8, 0.95, 1.05, 1.3, 2])) + 1)
    others = [each["value"] for each in rows if each["attribute"] == row["attribute"] and each["value"] != row["value"]]
    return str(drawn.choice(others))


def _claim(template: str, row: Row, value: str) -> str:
    unit = f" {row['unit']}" if row.get("unit") else ""
    article = "an" if row["attribute"][0] in "aeiou" else "a"
    return template.format(attribute=row["attribute"], entity=row["entity"], value=f"{value}{unit}", article=article)


def write_parquet(path: Path, rows: Sequence[Row]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), path)
    return path


def write_sqlite(path: Path, rows: Sequence[Row], table: str = "facts") -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(f"CREATE TABLE {table} ({', '.join(names)})")
        base.executemany(
            f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})",
            [[_cell(row.get(name)) for name in names] for row in rows],
        )
    return path


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: _cell(cell) for name, cell in row.items()} for row in rows)
    return path


def write_jsonl(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _cell(value: Any) -> Any:
    return "|".join(value) if isinstance(value, list) else value


def facts(path: Path, **settings: Any) -> Verifier:
    return Facts(FactsConfig(table=str(path), **settings))


def said(verifier: Verifier, step: str, *, problem: str = "", earlier: tuple[str, ...] = ()) -> Finding:
    return verifier.verify(StepInContext(problem=problem, earlier=earlier, step=step))
