"""Cleans charts, which are data of Vega-Lite, and draws them as SVG.

A child process draws them. Some texts crash Vega or V8, the JavaScript engine that runs it. Such a crash costs one chart.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pipeline.core.formatting import printable
from pipeline.graders.line_child import limit_next_task, lines, results_alone
from pipeline.graders.line_process import Process, end, read_line, start_module, write_line

SECONDS = 60.0
"""The time limit for all charts of a page. The first chart takes .4 s, each other one .02 s."""
_MODULE = "pipeline.display.drawing"
MEMORY_MIB = 1 << 20
"""The limit of the child's address space. It is high, because V8 reserves 64 GiB. V8 itself limits the memory in use."""
MOST_CHARS = 100
"""The length at which a text in a chart is cut. A label shows some 30 characters."""
_ASTRAL = re.compile("[^\0-\uffff]")
"""A character of two UTF-16 units. Vega fails where it cuts a label between the two."""


def cleaned(chart: Any) -> str:
    """The chart as one line of JSON. Texts are made printable and are cut, but different texts stay different. What is no
    finite number becomes null."""
    shown: dict[str, str] = {}
    _each_text(chart, lambda text: shown.setdefault(text, _ASTRAL.sub("�", printable(text[:MOST_CHARS]))))
    taken: set[str] = set()
    # First the texts that are printable already: they stay as they are.
    for text, name in sorted(shown.items(), key=lambda each: each[0] != each[1]):
        while name in taken:
            name += f" ({len(taken)})"
        shown[text] = name
        taken.add(name)
    return json.dumps(_each_text(chart, shown.__getitem__))


def drawn(charts: Sequence[str]) -> list[str]:
    """The SVG of each of the `cleaned` charts. Empty if the child crashed, could not start, or had no time left."""
    until = time.monotonic() + SECONDS
    process: Process | None = None
    found = []
    try:
        for chart in charts:
            line = b""
            with suppress(OSError):  # a TimeoutError is one
                if time.monotonic() < until:
                    process = process or start_module(_MODULE, [])
                    write_line(process, chart.encode())
                    line = read_line(process, until - time.monotonic())
            if process is not None and not line:
                end(process)
                process = None
            found.append(json.loads(line or '""'))
    finally:
        if process is not None:
            end(process)
    return found


def _each_text(part: Any, made: Callable[[str], str]) -> Any:
    """A copy of the part. `made` replaces each text, and None each number that is not finite."""
    if isinstance(part, dict):
        return {made(key): _each_text(each, made) for key, each in part.items()}
    if isinstance(part, list):
        return [_each_text(each, made) for each in part]
    if isinstance(part, str):
        return made(part)
    return None if isinstance(part, int | float) and not abs(part) <= sys.float_info.max else part


def _draw() -> None:
    """Run the child. It reads one chart per line and answers each with a line: its SVG, or an empty text if Vega refuses it."""
    import vl_convert

    results = results_alone(MEMORY_MIB)
    for line in lines():
        limit_next_task(SECONDS)
        svg = ""
        with suppress(ValueError):
            svg = vl_convert.vegalite_to_svg(line.decode(), allowed_base_urls=[])
        os.write(results, json.dumps(svg).encode() + b"\n")


if __name__ == "__main__":
    _draw()
