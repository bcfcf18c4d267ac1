"""The process that draws charts, see `charts`: a line is a chart of Vega-Lite, and its answer the SVG, or an empty text."""

import json
import os
import resource
import sys

import vl_convert

from pipeline.graders.line_child import limit_next_task, lines, results_alone

MEMORY_MIB = 4096
"""Of data: a small chart takes 580, and V8 reserves 64 GiB of addresses. More threads, one a core, take more."""


def main(cpu_seconds: float) -> None:
    """Draw charts until standard input ends or the parent has died."""
    results = results_alone(MEMORY_MIB, resource.RLIMIT_DATA)
    for line in lines():
        limit_next_task(cpu_seconds)
        try:
            svg = vl_convert.vegalite_to_svg(line.decode(), allowed_base_urls=[])
        except ValueError:
            svg = ""
        os.write(results, json.dumps(svg).encode() + b"\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
