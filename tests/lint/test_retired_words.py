"""The checks of retired words, and of code that asks for an implementation by its name, find them."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.lint.names import homes, named, questions
from tests.lint.words import documents, parts_of, retired_texts, retired_words


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def write_journal(): ...", ["write_journal"]),
        ("class CrewMember: ...", ["CrewMember"]),
        ("class Example: ...", ["Example"]),
        ("x.told = 1", ["told"]),
        ("f(room=1)", ["room"]),
        ("self._journals = 1", ["_journals"]),
        ("def journaled(): ...", ["journaled"]),
        ("so_many = 1", ["so_many"]),
        ("def test_every_door(): ...", ["test_every_door"]),
        ("class RolloutFacts: ...", ["RolloutFacts"]),
        ("def f(memo): ...", ["memo"]),
        ("import a.shelf", ["a.shelf"]),
        ("def f():\n    '''A step that is undecided.'''", ["undecided"]),
        ("x = 1  # so many rollouts", ["so many"]),
        ("x = '''As so\n    many.'''", [r"so\n    many"]),
        ("f'{x} are Undecided'", ["Undecided"]),
        ('def f():\n    """A state.\n\n    It tells what was learnt.\n    """', ["tells", "learnt"]),
        ("'core.doors'; x: 'Door[int]'", []),
        ("x = 1  # A unit is handed out.", ["handed"]),
        ("headroom = handle = bedroom = factor = by_hand = 1", []),
        ("async def facts() -> PolicyFacts: ...  # A fact, worked out by hand.", []),
    ],
)
def test_a_retired_word_is_found(tmp_path: Path, source: str, found: list[str]) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    lines = list(retired_words(path))
    assert len(lines) == len(found)
    assert all(name in line for name, line in zip(found, lines, strict=True))


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("README.md", "# Doors\n\nA chain is undecided.\n", [(1, "Doors"), (3, "undecided")]),
        ("README.md", "Was `undecided`.\n\n```\nmake journal\n```\n\nA journal.\n", [(7, "journal")]),
        ("label.yaml", "# What was learnt.\nname: pooled\n", [(1, "learnt")]),
        ("view.js", "// The crew.\nconst text = 'It tells';\n", [(1, "crew"), (2, "tells")]),
        ("page.css", "/* leftovers */", [(1, "leftovers")]),
        ("page.html", "<p>so many steps</p>", [(1, "so many")]),
        ("page.html", "<p>indoors, storytelling, bookshelf</p>", []),
    ],
)
def test_a_retired_word_is_found_in_other_files(
    tmp_path: Path, name: str, text: str, found: list[tuple[int, str]]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    lines = list(retired_texts(path))
    assert [line.split(" is retired")[0] for line in lines] == [f"{path}:{line}: {word!r}" for line, word in found]


def test_documents_settings_and_pages_are_looked_at() -> None:
    looked_at = {str(path.relative_to(ROOT)) for path in documents(ROOT)}
    assert looked_at >= {
        "README.md",
        "CHANGELOG.md",
        "conf/label.yaml",
        "conf/data/sample.yaml",
        "docker/rayjob.yaml",
        "pipeline/analysis/README.md",
        "pipeline/analysis/browser/tree.js",
        "pipeline/analysis/browser/browser.html",
        "pipeline/display/web/theme.css",
        "tests/bench/README.md",
    }


def test_a_module_may_not_be_called_by_one(tmp_path: Path) -> None:
    path = tmp_path / "told.py"
    path.write_text("")
    (line,) = retired_words(path)
    assert "told" in line


def test_names_are_split_into_words() -> None:
    assert parts_of("_read_HTTPServer_v2Name") == ["read", "http", "server", "v", "name"]


@pytest.mark.parametrize(
    "source",
    [
        'if config.name == "pooled": pass',
        'x = row["estimator"] in ("fixed", "bisect")',
        'match policy.kind:\n    case "oracle": pass',
        'if config.grader.kind != "math": pass',
        'x = getattr(config, "name") == "pooled"',
        'x = row.get("estimator") == "pooled"',
        'x = str(config.format).lower() == "trl"',
        'x = "oracle" == policy.kind',
        'x = config.implementation == "pooled"',
        'x = {"pooled": 1}[config.name]',
        "match config:\n    case PooledConfig():\n        pass",
        "x = isinstance(config, (settings.HfConfig, EmbeddedConfig))",
    ],
)
def test_a_question_for_a_name_is_seen(source: str) -> None:
    found = {name for _, name in named(ast.parse(source))}
    assert found & homes().keys()


def test_an_implementation_may_ask_for_its_own_name_alone(tmp_path: Path) -> None:
    asking = 'def asked(config):\n    return config.name == "{}"\n'
    files = {
        "estimators/pooled/choice.py": "pooled",
        "estimators/labels.py": "pooled",
        "export/formats/stepwise.py": "trl",
        "export/formats/plain.py": "trl",
        "estimators/registry.py": "fixed",
        "runtime/unit.py": "fixed",
    }
    for file, name in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(asking.format(name))
    found = [line.removeprefix(f"{tmp_path}/").partition(":")[0] for line in questions(tmp_path)]
    assert found == ["estimators/labels.py", "export/formats/plain.py", "runtime/unit.py"]
