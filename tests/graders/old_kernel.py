"""The child process that runs programs, on a kernel that does not ask before a new thread. It looks at them all the time."""

import platform
import sys

from pipeline.graders.code import child

if __name__ == "__main__":
    platform.release = lambda: "5.4.0"
    child.TICK_SECONDS = 0.0
    part = child.main(sys.argv[1:])
    if part is not None:
        part()
