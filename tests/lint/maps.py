"""The code maps: what each module of a package is for, a line each, from the first sentence of its docstring.

    python -m tests.lint.maps

writes them between the markers `<!-- map -->` and `<!-- /map -->` of the README.md of each package that has one, and in
`pipeline/README.md` those of all packages, with the maps of packages that have no README of their own. A test fails where a map
is not what the docstrings say, or a README lacks the markers.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.core.sentences import first_sentence

ROOT = Path(__file__).parents[2]
CODE = "pipeline"
README = "README.md"
BEGIN, END = "<!-- map -->", "<!-- /map -->"
_REGION = re.compile(rf"^{BEGIN}\n.*?^{END}$", re.DOTALL | re.MULTILINE)
_UNMARKED = f"has no line {BEGIN} with a line {END} after it"


def readmes(root: Path = ROOT) -> list[Path]:
    """The documents that have a map: that of the whole, and those of packages right below it."""
    code = root / CODE
    return [code / README, *sorted(path for path in code.glob(f"*/{README}") if _is_package(path.parent))]


def mapped(file: Path) -> str:
    """A document with its map made again. Raises ValueError where it has no place for it, or two."""
    text = file.read_text("utf-8")
    if len(_REGION.findall(text)) != 1 or text.count(BEGIN) != 1:
        raise ValueError(f"{file} {_UNMARKED}")
    folder = file.parent
    made = _whole(folder) if folder.name == CODE else _table(_modules(folder))
    return _REGION.sub(lambda _: f"{BEGIN}\n\n{made}\n{END}", text)


def idea(file: Path) -> str:
    """The first sentence of a module's docstring, in a line. Raises ValueError where there is none."""
    found = ast.get_docstring(ast.parse(file.read_text("utf-8")))
    if not (sentence := first_sentence((found or "").partition("\n\n")[0])):
        raise ValueError(f"{file} has no docstring")
    return sentence


def _whole(code: Path) -> str:
    """All packages with a line each, then the maps of those without a document of their own."""
    packages = sorted(folder for folder in code.iterdir() if _is_package(folder))
    rows = [(f"[`{each.name}`]({each.name}/)", idea(each / "__init__.py")) for each in packages]
    rows += [(_link(file, code), idea(file)) for file in sorted(code.glob("*.py")) if file.name != "__init__.py"]
    parts = [_table(rows, "package")]
    for each in packages:
        if not (each / README).is_file():
            rows = [(f"[`{name}`]({each.name}/{target})", text) for name, target, text in _listed(each)]
            if rows:
                parts.append(f"### `{each.name}`\n\n{_table(rows)}")
    return "\n".join(parts)


def _modules(folder: Path) -> list[tuple[str, str]]:
    return [(f"[`{name}`]({target})", text) for name, target, text in _listed(folder)]


def _listed(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name, path and idea of the modules and packages below a folder, each package before its modules."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" and path.name != "__init__.py":
            yield path.stem, path.name, idea(path)
        elif _is_package(path):
            yield path.name, f"{path.name}/", idea(path / "__init__.py")
            yield from ((f"{path.name}.{name}", f"{path.name}/{target}", text) for name, target, text in _listed(path))


def _link(file: Path, folder: Path) -> str:
    return f"[`{file.stem}`]({file.relative_to(folder).as_posix()})"


def _table(rows: list[tuple[str, str]], first: str = "module") -> str:
    lines = [f"| {name} | {text.replace('|', chr(92) + '|')} |\n" for name, text in rows]
    return "".join([f"| {first} | its idea in a line |\n|---|---|\n", *lines])


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def main() -> int:
    """Write all maps. 0: all are there."""
    for file in readmes():
        file.write_text(mapped(file), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
