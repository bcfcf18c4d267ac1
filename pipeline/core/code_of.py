"""What says which code an object runs that a Python call gave, and what it holds: a text, the same in every later process.

A class of an installed distribution is known by that distribution and its version; one of another module by the file of that
module; one of a notebook or of the main program by the text of its class, where Python has it. What else such code calls or
inherits is not looked at. What an object holds counts as far as JSON can say it; of other values counts what they are called.
"""

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from pipeline.core.registry import GivenObject

SHOWN = 16
"""Characters of a hash: 64 bits."""
_INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed distributions: another module may have the name of one."""
_distributions = cache(packages_distributions)
NOTEBOOK = "notebook"
"""The mark of a class that no file is known to hold alone."""


def with_code(made: Any, loaded: Any, make: Callable[[Any], Any]) -> GivenObject:
    """An object for a registry, with what is known of its code."""
    kind = type(made)
    held = {key: value for key, value in getattr(made, "__dict__", {}).items() if key != "settings"}
    where = f"{kind.__module__}.{kind.__qualname__}"
    return GivenObject(made=made, loaded=loaded, make=make, where=where, code=code_of(kind, held))


def code_of(kind: type, held: Mapping[str, Any]) -> str:
    """The text for an object of this class. `held`: what it holds besides its settings."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    mark, known = "", b""
    if file is None or kind.__module__ == "__main__":
        mark, known = NOTEBOOK, _text_of(kind).encode()
    elif _INSTALLED & {*Path(file).parts} and (found := _distributions().get(kind.__module__.partition(".")[0])):
        mark = f"of {found[0]} {version(found[0])}"
    else:
        known = Path(file).read_bytes()
    if held:
        known += json.dumps(held, skipkeys=True, default=_called).encode()
    return " ".join(filter(None, [mark, hashlib.sha256(known).hexdigest()[:SHOWN] if known else ""]))


def _text_of(kind: type) -> str:
    """The source text of a class. In a notebook Python has that of its methods alone."""
    with suppress(OSError, TypeError):
        return inspect.getsource(kind)
    texts = []
    for each in vars(kind).values():
        with suppress(OSError, TypeError):
            texts.append(inspect.getsource(getattr(each, "fget", None) or each))
    return "".join(texts)


def _called(value: object) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))
