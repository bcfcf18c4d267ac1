"""The budget of size: `tests/size.toml` says how much each part of the project may hold, and lets it fall, never rise.

    python -m tests.lint.size           # what `make lint` asks
    python -m tests.lint.size --lower   # writes the numbers that fell

A package of `pipeline/` has lines and modules, `tests/` has lines, all Markdown has words. Lines are those of all files but
Markdown (`ruff format` has written the Python), so that nothing is won by moving text to another kind of file; of `tests/`
those of code, not of stored data. `__init__.py` is no module.
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = "tests/size.toml"
SLACK = 1.02
"""A number may stand so much above what is there, so that a small change need not touch it."""
CODE = {".py", ".pyi", ".js", ".css", ".html", ".jinja", ".yaml", ".txt", ".ipynb", ".sh", ".c", ".toml", ".patch"}
Sizes = dict[str, dict[str, int]]


def sizes(root: Path = ROOT) -> Sizes:
    """What is there, in the sections and under the names of `tests/size.toml`."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name in _git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        path = root / name
        top, *inner = Path(name).parts
        if path.suffix == ".md":
            total["words"] += len(path.read_text("utf-8").split())
        elif top in ("pipeline", "conf") and path.is_file():
            package = "conf" if top == "conf" else inner[0] if len(inner) > 1 else "top"
            lines[package] += _lines(path)
            modules[package] += path.suffix == ".py" and path.name != "__init__.py"
        elif top == "tests" and path.suffix in CODE:
            total["tests"] += _lines(path)
    total |= {"lines": lines.total(), "modules": modules.total()}
    return {"lines": dict(lines), "modules": {name: modules[name] for name in lines}, "total": dict(total)}


def wrong(there: Sizes, budget: Sizes, earlier: Iterator[Sizes]) -> Iterator[str]:
    """What breaks the budget, a line each. `earlier` are the budgets of former commits."""
    for section, found in there.items():
        granted: Counter[str] = Counter()
        for grant in budget.get("grants", {}).values() if section == "total" else ():
            granted.update(grant)  # type: ignore[call-overload]
        known = budget.get(section, {})
        for name in sorted({*found, *known}):
            has, may = found.get(name, 0), known.get(name, 0) + granted[name]
            if has > may:
                yield f"{section}.{name} is {has:,}, {has - may:,} above its budget: make it smaller, or say why it grows"
            elif may > has * SLACK:
                yield f"{section}.{name} may be {may:,} and is {has:,}: lower it (python -m tests.lint.size --lower)"
    for former in earlier:
        for name, may in budget["total"].items():
            if may > former["total"].get(name, may):
                yield f"total.{name} rose from {former['total'][name]:,} to {may:,}: a total rises only under [grants]"


def lowered(text: str, there: Sizes) -> str:
    """The text of the budget with the numbers that fell. Comments stay."""
    section = ""

    def lower(line: str) -> str:
        nonlocal section
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading[1]
        entry = re.match(r"(\w+) = (\d+)", line)
        if not entry or section not in there:
            return line
        fallen = min(int(entry[2]), there[section].get(entry[1], 0))
        return f"{entry[1]} = {fallen}{line[entry.end() :]}"

    return "\n".join(map(lower, text.splitlines())) + "\n"


def _former(root: Path) -> Iterator[Sizes]:
    for commit in _git(root, "log", "--format=%h", "--", BUDGET).split():
        text = _git(root, "show", f"{commit}:{BUDGET}", check=False)
        if text:
            yield tomllib.loads(text)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _git(root: Path, *words: str, check: bool = True) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=check).stdout


def main(arguments: list[str]) -> int:
    path = ROOT / BUDGET
    there = sizes()
    if arguments == ["--lower"]:
        path.write_text(lowered(path.read_text("utf-8"), there), "utf-8")
    found = list(wrong(there, tomllib.loads(path.read_text("utf-8")), _former(ROOT)))
    print(*(f"{BUDGET}: {each}" for each in found), sep="\n", end="\n" if found else "")
    total = there["total"]
    print(
        f"{total['lines']:,} lines in {total['modules']} modules of pipeline/ and conf/, "
        f"{total['tests']:,} lines of tests, {total['words']:,} words of Markdown."
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
