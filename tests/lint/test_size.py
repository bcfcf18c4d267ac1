"""The budget of size: what it refuses, and how it falls."""

import subprocess
from pathlib import Path

import pytest

from tests.lint.size import Sizes, lowered, sizes, wrong

THERE: Sizes = {"lines": {"core": 100}, "modules": {"core": 5}, "total": {"tests": 200}}


def budget(lines: int = 100, tests: int = 200, **grants: dict[str, int]) -> Sizes:
    return {"lines": {"core": lines}, "modules": {"core": 5}, "total": {"tests": tests}, "grants": grants}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (budget(), []),
        (budget(lines=102), []),
        (budget(lines=103), ["lines.core may be 103 and is 100: lower it"]),
        (budget(lines=99), ["lines.core is 100, 1 above its budget"]),
        (budget(tests=190), ["total.tests is 200, 10 above its budget"]),
        (budget(tests=190, one={"tests": 4}, two={"tests": 6}), []),
        ({**budget(), "lines": {}}, ["lines.core is 100, 100 above its budget"]),
        ({**budget(), "lines": {"core": 100, "gone": 7}}, ["lines.gone may be 7 and is 0: lower it"]),
    ],
)
def test_a_part_stays_within_its_number_and_near_it(now: Sizes, said: list[str]) -> None:
    found = list(wrong(THERE, now, iter(())))
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


def test_a_total_rises_only_by_a_grant() -> None:
    said = "total.tests rose from 199 to 200: a total rises only under [grants]"
    assert list(wrong(THERE, budget(), iter([budget(tests=250), budget(tests=199)]))) == [said]
    granted = budget(tests=199, more={"tests": 1})
    assert list(wrong(THERE, granted, iter([budget(tests=199)]))) == []


def test_numbers_that_fell_are_written_and_reasons_stay() -> None:
    text = "# Why.\n[lines]\ncore = 120  # it grew\n[total]\ntests = 190\n[grants]\nmore = { tests = 10 }\n"
    assert lowered(text, THERE) == text.replace("120", "100")


def test_every_file_is_counted_once_and_markdown_by_its_words(tmp_path: Path) -> None:
    for name, text in {
        "pipeline/__init__.py": "1\n",
        "pipeline/core/__init__.py": "1\n2\n",
        "pipeline/core/a.py": "1\n2\n3\n",
        "pipeline/core/page.js": "1\n",
        "pipeline/core/README.md": "two words\n",
        "conf/a.yaml": "1\n",
        "tests/test_a.py": "1\n2\n",
        "tests/stored.json": "1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert sizes(tmp_path) == {
        "lines": {"top": 1, "core": 6, "conf": 1},
        "modules": {"top": 0, "core": 1, "conf": 0},
        "total": {"words": 2, "tests": 2, "lines": 8, "modules": 1},
    }
