"""math-verify as its documentation calls it: one `{"gold", "answer"}` per line in, `{"correct", "seconds"}` per line out.

In a process of its own, so that an answer that hangs it can be ended, and in a folder of its own, since it may run code.
"""

import json
import logging
import sys
import time

from math_verify import parse, verify


def main() -> None:
    logging.disable(logging.CRITICAL)
    print("ready", flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        began = time.perf_counter()
        correct = verify(parse(task["gold"]), parse(task["answer"]))
        print(json.dumps({"correct": correct, "seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
