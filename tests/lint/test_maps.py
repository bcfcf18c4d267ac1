"""Code maps are what the docstrings say, and every package has one."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.lint.maps import BEGIN, END, idea, mapped, readmes

EMPTY = f"# It\n\n{BEGIN}\n{END}\n\nAfter it.\n"


@pytest.mark.parametrize("file", readmes(), ids=lambda file: file.parent.name)
def test_a_map_is_what_the_docstrings_say(file: Path) -> None:
    assert file.read_text("utf-8") == mapped(file), "make it again: python -m tests.lint.maps"


def test_every_module_is_on_a_map() -> None:
    texts = {file.parent: file.read_text("utf-8") for file in readmes()}
    for module in (ROOT / "pipeline").rglob("*.py"):
        if module.name == "__init__.py":
            continue
        package = ROOT / "pipeline" / module.relative_to(ROOT / "pipeline").parts[0]
        folder = package if package in texts else ROOT / "pipeline"
        assert f"]({module.relative_to(folder).as_posix()}) |" in texts[folder], module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with a package that has a README and one that has none."""
    for name, text in {
        "pipeline/__init__.py": '"""All."""\n',
        "pipeline/README.md": EMPTY,
        "pipeline/near/__init__.py": '"""What is near. Not far."""\n',
        "pipeline/near/README.md": EMPTY,
        "pipeline/near/one.py": '"""One: the first\nof all.\n\nMore of it.\n"""\n',
        "pipeline/near/deep/__init__.py": '"""Deep | down."""\n',
        "pipeline/near/deep/two.py": '"""Two\n"""\n',
        "pipeline/far/__init__.py": '"""What is far."""\n',
        "pipeline/far/three.py": '"""Three."""\n',
        "pipeline/data.txt": "no module",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_package_has_the_map_of_its_modules(root: Path) -> None:
    assert mapped(root / "pipeline" / "near" / "README.md") == (
        f"# It\n\n{BEGIN}\n\n| module | its idea in a line |\n|---|---|\n"
        "| [`deep`](deep/) | Deep \\| down. |\n"
        "| [`deep.two`](deep/two.py) | Two. |\n"
        "| [`one`](one.py) | One: the first of all. |\n"
        f"\n{END}\n\nAfter it.\n"
    )


def test_the_whole_has_all_packages_and_the_maps_of_those_without_a_readme(root: Path) -> None:
    text = mapped(root / "pipeline" / "README.md")
    assert "| [`near`](near/) | What is near. |\n" in text
    assert "| [`far`](far/) | What is far. |\n" in text
    assert "### `far`\n\n| module | its idea in a line |\n|---|---|\n| [`three`](far/three.py) | Three. |\n" in text
    assert "### `near`" not in text
    assert "one.py" not in text


def test_a_map_that_was_made_stays_until_a_docstring_changes(root: Path) -> None:
    assert [file.parent.name for file in readmes(root)] == ["pipeline", "near"]
    for file in readmes(root):
        file.write_text(mapped(file))
        assert file.read_text() == mapped(file)
    (root / "pipeline" / "near" / "one.py").write_text('"""Another."""\n')
    assert "| Another. |" in mapped(root / "pipeline" / "near" / "README.md")
    (root / "pipeline" / "near" / "four.py").write_text('"""Four."""\n')
    assert "| [`four`](four.py) | Four. |" in mapped(root / "pipeline" / "near" / "README.md")


@pytest.mark.parametrize(
    "text", ["# It\n", f"# It\n\n{BEGIN}\n", f"{END}\n{BEGIN}\n", EMPTY + EMPTY, f"see {BEGIN} {END}\n"]
)
def test_a_readme_without_its_markers_is_refused(text: str, root: Path) -> None:
    file = root / "pipeline" / "near" / "README.md"
    file.write_text(text)
    with pytest.raises(ValueError, match="has no line <!-- map -->"):
        mapped(file)


def test_a_module_without_a_docstring_is_refused(root: Path) -> None:
    (root / "pipeline" / "near" / "one.py").write_text("one = 1\n")
    with pytest.raises(ValueError, match=r"one\.py has no docstring"):
        idea(root / "pipeline" / "near" / "one.py")
    with pytest.raises(ValueError, match=r"one\.py has no docstring"):
        mapped(root / "pipeline" / "near" / "README.md")
