"""`make contract [VLLM=0.34.0]`: fetches the Python of GPU wheels, and says what they lack of what we use."""

import sys

from tests.contract.judge import complaints
from tests.contract.source import Source
from tests.contract.uses import our_files, recipes, uses, variables
from tests.contract.wheel import fetch

VERSIONS = ("0.32.0", "0.33.0")
"""The pinned one, which the GPU machines run, and the next."""


def main() -> int:
    files = our_files()
    used, environment = uses(files), variables({**files, **recipes()})
    broken = False
    for version in sys.argv[1:] or VERSIONS:
        said = complaints(Source(fetch(version)), used, environment)
        print(f"vllm {version}: {len(used)} uses and {len(environment)} variables, {len(said)} that it does not have")
        for line in said:
            print(f"  {line}")
        broken = broken or bool(said)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
