"""The child process that holds mypy. It reads one program per line and writes one answer per line.

    {"source": "x: int = 'a'", "seconds": 5.0, "memory_mib": 1024}  ->  {"messages": ["program.py:1: error: ..."]}

Its first line is empty, once it is ready. `messages` is null where mypy does not end within the limits. Covered: see
`graders.line_child`.
"""

import json
import os

from pipeline.graders.line_child import lines, results_alone
from pipeline.verifiers.types.checker import TypeChecker

MEMORY_MIB = 4096


def main() -> None:
    """Serve programs until standard input ends or the parent has died."""
    results = results_alone(MEMORY_MIB)
    asked = lines()
    checker = TypeChecker()
    os.write(results, b"{}\n")
    for line in asked:
        task = json.loads(line)
        found = checker.messages(task["source"], seconds=task["seconds"], memory_bytes=task["memory_mib"] << 20)
        answer = memoryview(json.dumps({"messages": found}).encode() + b"\n")
        while answer:
            answer = answer[os.write(results, answer) :]


if __name__ == "__main__":
    main()
