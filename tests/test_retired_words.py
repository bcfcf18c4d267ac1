"""The check of retired words finds them."""

from pathlib import Path

import pytest

from tests.words import parts_of, retired_words


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def write_journal(): ...", ["write_journal"]),
        ("class CrewMember: ...", ["CrewMember"]),
        ("class Example: ...", ["Example"]),
        ("x.told = 1", ["told"]),
        ("f(room=1)", ["room"]),
        ("def f(goal): ...", ["goal"]),
        ("import a.shelf", ["a.shelf"]),
        ("def f():\n    '''A step that is undecided.'''", ["undecided"]),
        ("x = 1  # so many rollouts", ["so many"]),
        ("f'{x} are Undecided'", ["Undecided"]),
        ("headroom = handle = bedroom = factor = 1", []),
    ],
)
def test_a_retired_word_is_found(tmp_path: Path, source: str, found: list[str]) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    lines = list(retired_words(path))
    assert len(lines) == len(found)
    assert all(name in line for name, line in zip(found, lines, strict=True))


def test_a_module_may_not_be_called_by_one(tmp_path: Path) -> None:
    path = tmp_path / "told.py"
    path.write_text("")
    (line,) = retired_words(path)
    assert "told" in line


def test_names_are_split_into_words() -> None:
    assert parts_of("_read_HTTPServer_v2Name") == ["read", "http", "server", "v", "name"]
