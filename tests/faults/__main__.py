"""`python -m tests.faults COUNT [FIRST]`: COUNT seeds on all cores; exit code 1 when one brings a fault to light."""

import sys

from tests.faults.many import play

if __name__ == "__main__":
    sys.exit(play(*map(int, sys.argv[1:])))
