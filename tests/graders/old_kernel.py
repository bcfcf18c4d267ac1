"""The child process that runs programs, on a kernel that does not ask before a new thread."""

import platform
import sys

from pipeline.graders.code.child import main

if __name__ == "__main__":
    platform.release = lambda: "5.4.0"
    part = main(sys.argv[1:])
    if part is not None:
        part()
