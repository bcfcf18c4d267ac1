"""The long description of the distribution: the README as a package index can show it.

An index shows one page without the files beside it. Pictures and links to them become addresses in the repository that
`[project.urls]` names as Repository, and are left out while it names none; a link leaves its text. Diagrams, which an index
shows as source text, are left out, and so are links within the page, whose headings have no anchors there.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(\w*)")
_CODE = re.compile(r"((?<!`)`+(?!`)[^`\n]+`+)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)[^)]*\)")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\)|`[^`]*`)*)\]\((?!https?:|mailto:)([^)\s]+)[^)]*\)")
_EMPTY_LINK = re.compile(r"(?<!!)\[\s*\]\([^)]*\)")


class LongDescription(MetadataHookInterface):
    """Makes `readme`, which pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        repository = metadata.get("urls", {}).get("Repository", "")
        text = for_index((Path(self.root) / "README.md").read_text("utf-8"), repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def for_index(text: str, repository: str = "") -> str:
    """The README of a distribution whose repository has this address, if any."""
    written: list[str] = []
    prose: list[str] = []
    fence = language = ""

    def end_prose() -> None:
        changed = _changed("\n".join(prose), repository.rstrip("/")).split("\n") if prose else []
        written.extend(new for old, new in zip(prose, changed, strict=True) if new.strip(" |") or not old.strip())
        prose.clear()

    for line in text.splitlines():
        found = _FENCE.match(line)
        closes = bool(fence and found and found[1].startswith(fence) and not found[2])
        if not fence and not found:
            prose.append(line)
            continue
        if found and not fence:
            end_prose()
            fence, language = found[1], found[2]
        if language != "mermaid":
            written.append(line)
        if closes:
            fence = language = ""
    end_prose()
    return re.sub(r"\n{3,}", "\n\n", _without_empty_tables("\n".join(written))).rstrip("\n") + "\n"


def _changed(text: str, repository: str) -> str:
    def picture(found: re.Match[str]) -> str:
        return f"![{found[1]}]({repository}/raw/HEAD/{found[2]})" if repository else ""

    def link(found: re.Match[str]) -> str:
        local = found[2].startswith("#") or not repository
        return found[1] if local else f"[{found[1]}]({repository}/blob/HEAD/{found[2]})"

    # Code that is a link's whole text belongs to the link, other code is left alone.
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    plain = _EMPTY_LINK.sub("", _LINK.sub(link, _PICTURE.sub(picture, _CODE.sub(keep, text))))
    return re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], plain)


def _without_empty_tables(text: str) -> str:
    """A table whose rows held pictures alone has a head and no rows."""
    return re.sub(r"(?m)^\|.*\n\|[-:| ]+\|(?:\n(?!\|)|\Z)", "\n", text)
