"""The budget of size: `tests/size.toml` says how much each part of the project may hold, and lets it fall, never rise.

    python -m tests.lint.size           # what `make lint` asks
    python -m tests.lint.size --lower   # writes the numbers that fell

A package of `pipeline/` has lines and modules, `tests/` has lines, all Markdown has words. Lines are those of every file that
is no Markdown, so that nothing is won by moving text to another kind of file or to another folder (`other`). Only data is not
counted: what tests store, locks, pictures. `ruff format` has written the Python; a line of another file counts once for every
WIDTH characters. `__init__.py` is no module. Former budgets are those that git knows, which in a shallow clone are few.
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = "tests/size.toml"
SLACK = 1.02
"""A number may stand so much above what is there, so that a small change need not touch it."""
WIDTH = 128
PROSE = {".md", ".rst"}
DATA = {".json", ".jsonl", ".parquet", ".safetensors", ".lock", ".png"}
"""Not counted in `tests/` and beside the four folders."""
SECTIONS = ("lines", "modules", "total")
Sizes = dict[str, dict[str, int]]


def sizes(root: Path = ROOT) -> Sizes:
    """What is there, in the sections and under the names of `tests/size.toml`."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name in _git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        path = root / name
        top, *inner = Path(name).parts
        if path.suffix in PROSE:
            total["words"] += len(path.read_text("utf-8").split())
        elif top not in ("pipeline", "conf") and (path.suffix in DATA or name in (BUDGET, "LICENSE")):
            continue
        elif top == "tests":
            total["tests"] += _lines(path)
        elif path.is_file():
            package = (
                (inner[0] if len(inner) > 1 else "top") if top == "pipeline" else "conf" if top == "conf" else "other"
            )
            lines[package] += _lines(path)
            modules[package] += path.suffix == ".py" and path.name != "__init__.py"
    total |= {"lines": lines.total(), "modules": modules.total()}
    return {"lines": dict(lines), "modules": {name: modules[name] for name in lines}, "total": dict(total)}


def wrong(there: Sizes, text: str, former: Sequence[str]) -> list[str]:
    """What breaks the budget with this text, a line each. `former` are its texts in earlier commits, the newest first."""
    budget, earlier = tomllib.loads(text), [tomllib.loads(each) for each in former]
    granted: Counter[str] = Counter()
    for grant in budget.get("grants", {}).values():
        granted.update(grant)
    found = []
    for section in SECTIONS:
        known = budget.get(section, {})
        for name in sorted({*there[section], *known}):
            has, own = there[section].get(name, 0), known.get(name, 0)
            may = own + (granted[name] if section == "total" else 0)
            if has > may:
                found.append(
                    f"{section}.{name} is {has:,}, {has - may:,} above its budget: make it smaller, or say why it grows"
                )
            elif may > has * SLACK:
                found.append(
                    f"{section}.{name} may be {may:,} and is {has:,}: lower it (python -m tests.lint.size --lower)"
                )
            before = [each[section].get(name, 0) for each in earlier if section in each]
            if section == "total" and before and own > min(before):
                found.append(f"total.{name} rose from {min(before):,} to {own:,}: a total rises only under [grants]")
            elif before and own > before[0] and not re.search(rf"^{name} = {own} +#", text, re.MULTILINE):
                found.append(
                    f"{section}.{name} rose from {before[0]:,} to {own:,}: write the reason beside it, after a #"
                )
    return found


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


def _former(root: Path) -> list[str]:
    """The budget before the one of the working tree, then those before it."""
    commits = _git(root, "log", "--format=%h", "--", BUDGET).split()
    texts = [_git(root, "show", f"{commit}:{BUDGET}", check=False) for commit in commits]
    now = (root / BUDGET).read_text("utf-8")
    return [text for text in texts if text and text != now]


def _lines(path: Path) -> int:
    if path.suffix == ".py":
        return path.read_bytes().count(b"\n")
    return sum(1 + len(line) // WIDTH for line in path.read_bytes().splitlines())


def _git(root: Path, *words: str, check: bool = True) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=check).stdout


def main(arguments: list[str]) -> int:
    path = ROOT / BUDGET
    there = sizes()
    if arguments == ["--lower"]:
        path.write_text(lowered(path.read_text("utf-8"), there), "utf-8")
    found = wrong(there, path.read_text("utf-8"), _former(ROOT))
    print(*(f"{BUDGET}: {each}" for each in found), sep="\n", end="\n" if found else "")
    total = there["total"]
    print(
        f"{total['lines']:,} lines in {total['modules']} modules beside tests/, {total['tests']:,} lines of tests, "
        f"{total['words']:,} words of Markdown."
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
