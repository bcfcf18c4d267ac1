"""Charts as the data of Vega-Lite, cleaned, and as SVG.

A child process draws them, because Vega and what is under it end their process at a text that they cannot take. It costs no
more than the chart that it drew. Texts come to it as a terminal shows them.
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
"""For all charts of a page. The first takes .4 s, each other one .02 s."""
_MODULE = "pipeline.analysis.report.charts"
MEMORY_MIB = 1 << 20
"""Of addresses, of which V8 reserves 64 GiB. What it fills is limited by V8 itself."""
MOST_CHARS = 100
"""Of a text in a chart; a label shows some 30."""
_ASTRAL = re.compile("[^\0-\uffff]")
"""Vega may cut a label within such a character, and then fails."""


def cleaned(chart: Any) -> str:
    """A chart as JSON in one line. Different texts stay different. What is no number of JSON is null."""
    shown: dict[str, str] = {}
    _each_text(chart, lambda text: shown.setdefault(text, _ASTRAL.sub("�", printable(text[:MOST_CHARS]))))
    taken: set[str] = set()
    # Names of ours are clean, and keep their text.
    for text, name in sorted(shown.items(), key=lambda each: each[0] != each[1]):
        while name in taken:
            name += f" ({len(taken)})"
        shown[text] = name
        taken.add(name)
    return json.dumps(_each_text(chart, shown.__getitem__))


def drawn(charts: Sequence[str]) -> list[str]:
    """The SVG of each of the `cleaned` charts. Empty where the process ended at it, is late, or cannot be started."""
    until = time.monotonic() + SECONDS
    process: Process | None = None
    found = []
    try:
        for chart in charts:
            line = b""
            with suppress(OSError):  # a TimeoutError is one
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
    """The part with what is `made` of its texts, and without numbers that are none."""
    if isinstance(part, dict):
        return {made(key): _each_text(each, made) for key, each in part.items()}
    if isinstance(part, list):
        return [_each_text(each, made) for each in part]
    if isinstance(part, str):
        return made(part)
    return None if isinstance(part, int | float) and not abs(part) <= sys.float_info.max else part


def _draw() -> None:
    """The process that draws: a line is a chart, and its answer the SVG, or an empty text."""
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
