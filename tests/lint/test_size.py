"""The budget of size: what it refuses, and how it falls."""

import subprocess
from pathlib import Path

import pytest

from tests.lint.size import Sizes, lowered, sizes, wrong

THERE: Sizes = {"lines": {"core": 100}, "modules": {"core": 5}, "total": {"tests": 200}}


def budget(lines: str = "core = 100", tests: int = 200, grants: str = "") -> str:
    return f"[lines]\n{lines}\n[modules]\ncore = 5\n[total]\ntests = {tests}\n[grants]\n{grants}\n"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (budget(), []),
        (budget("core = 102"), []),
        (budget("core = 103"), ["lines.core may be 103 and is 100: lower it"]),
        (budget("core = 99"), ["lines.core is 100, 1 above its budget"]),
        (budget(tests=190), ["total.tests is 200, 10 above its budget"]),
        (budget(tests=190, grants="one = { tests = 4 }\ntwo = { tests = 6 }"), []),
        (budget(""), ["lines.core is 100, 100 above its budget"]),
        (budget("core = 100\ngone = 7"), ["lines.gone may be 7 and is 0: lower it"]),
        ("", ["lines.core is 100, 100", "modules.core is 5, 5", "total.tests is 200, 200"]),
    ],
)
def test_a_part_stays_within_its_number_and_near_it(now: str, said: list[str]) -> None:
    found = wrong(THERE, now, [])
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


def test_a_total_rises_only_by_a_grant_and_a_part_with_its_reason() -> None:
    said = "total.tests rose from 199 to 200: a total rises only under [grants]"
    assert wrong(THERE, budget(), [budget(tests=250), budget(tests=199)]) == [said]
    assert wrong(THERE, budget(tests=199, grants="more = { tests = 1 }"), [budget(tests=199)]) == []
    said = "lines.core rose from 90 to 100: write the reason beside it, after a #"
    assert wrong(THERE, budget(), [budget("core = 90")]) == [said]
    assert wrong(THERE, budget("core = 100  # it reads numbers"), [budget("core = 90")]) == []


def test_numbers_that_fell_are_written_and_reasons_stay() -> None:
    text = "# Why.\n[lines]\ncore = 120  # it grew\n[total]\ntests = 190\n[grants]\nmore = { tests = 10 }\n"
    assert lowered(text, THERE) == text.replace("120", "100")


def test_every_file_is_counted_once_and_markdown_by_its_words(tmp_path: Path) -> None:
    for name, text in {
        "pipeline/__init__.py": "1\n",
        "pipeline/core/__init__.py": "1\n2\n",
        "pipeline/core/a.py": "1\n2\n3\n",
        "pipeline/core/page.js": "1\n" + "2" * 200,
        "pipeline/core/words.json": "1\n",
        "docker/start.py": "1\n",
        "pipeline/core/README.md": "two words\n",
        "conf/a.yaml": "1\n",
        "tests/test_a.py": "1\n2\n",
        "tests/stored.json": "1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert sizes(tmp_path) == {
        "lines": {"top": 1, "core": 9, "conf": 1, "other": 1},
        "modules": {"top": 0, "core": 1, "conf": 0, "other": 1},
        "total": {"words": 2, "tests": 2, "lines": 12, "modules": 2},
    }
