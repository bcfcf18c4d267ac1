"""The name that a misspelt one most likely means, for error messages. Without a near miss there is no guess."""

import difflib
from collections.abc import Sequence

_OTHERS = {"base_url": "urls", "api_base": "urls", "max_new_tokens": "max_tokens", "num_samples": "rollouts"}
"""Names of other programs, and ours."""
MOST_GUESSES = 3
MOST_NAMES = 24
"""Of more names than that, an error message has only the nearest."""
NEAREST_NAMES = 5
_NEAR = 0.75
"""The least similarity (`SequenceMatcher.ratio`) of a near miss: `inptu` and `input` have 0.8, `rule` and `run` 0.57."""


def choice_hint(name: str, names: Sequence[str]) -> str:
    """The end of an error message about an unknown name: the nearest name, if one is near, and all names, or of many names
    those that are the most like it."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
    if near and len(names) == 1:
        return f"did you mean {near[0]}?"
    if len(names) > MOST_NAMES:
        nearest = difflib.get_close_matches(name, names, n=NEAREST_NAMES, cutoff=0.0)
        found = f"the nearest of the {len(names)} names are {', '.join(nearest)}"
        return f"did you mean {near[0]}? T{found[1:]}" if near else found
    return f"did you mean {near[0]}? There are {', '.join(names)}" if near else f"choose from {', '.join(names)}"


def nearest_keys(key: str, keys: Sequence[str]) -> list[str]:
    """The dotted keys that an unknown one most likely means: with a near spelling in the same section, with the same last part,
    with the nearest spelling of it, with the same first words (`warmup`: `warmup_ratio`), or with words of these initials
    (`lr`: `learning_rate`). At most MOST_GUESSES, empty if none is near."""
    section, _, name = key.rpartition(".")
    name = _OTHERS.get(name, name)
    last = {known: known.rpartition(".")[2] for known in dict.fromkeys(keys)}
    beside = {known: own for known, own in last.items() if section and known.rpartition(".")[0] == section}
    if not (found := _misspelt(section, name, beside) or [known for known in last if last[known] == name]):
        found = _misspelt(section, name, last)
    if not found and not section:
        found = [known for known in last if last[known].startswith(f"{name}_")]
    if not found and not section and len(name) > 1:
        found = [known for known in last if name == "".join(word[:1] for word in last[known].split("_"))]
    return found[:MOST_GUESSES]


def _misspelt(section: str, name: str, last: dict[str, str]) -> list[str]:
    """The key with the nearest spelling. A section that is given has to be near too."""
    alike = {
        known: _similarity(name, own)
        for known, own in last.items()
        if not section or _similarity(section, known.rpartition(".")[0]) >= _NEAR
    }
    best = max(alike.values(), default=0.0)
    return [known for known, value in alike.items() if value == best][:1] if best >= _NEAR else []


def _similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
