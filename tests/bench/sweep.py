"""What a sweep takes against its runs alone: 4 thresholds x 2 seeds of the oracle, by the command line as users start it.

The runs alone are eight commands, each with its own Ray. A second sweep shares nothing: four temperatures, which the oracle
does not feel, instead of four thresholds.
"""

import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

SEEDS = (1, 2)
SWEPT = {
    "estimator.threshold": (0.1, 0.3, 0.5, 0.7),
    "sampling.temperature": (0.7, 0.8, 0.9, 1.0),
}
"""Of the first, runs share their rollouts."""
_FIXED = ("policy=oracle", "data=sample", "estimator=fixed", "estimator.rule=threshold", "sampling.rollouts=16")


def sweep() -> None:
    print(f"\nsweep: 4 values x {len(SEEDS)} seeds of the oracle on the sample, seconds of the commands")
    for key, values in SWEPT.items():
        with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
            folder = Path(name)
            alone = [
                _seconds(f"{key}={value}", f"policy.oracle.seed={seed}", f"run_dir={folder / f'{value}-{seed}'}")
                for value, seed in product(values, SEEDS)
            ]
            joined = (",".join(map(str, each)) for each in (values, SEEDS))
            swept = [f"{name}={each}" for name, each in zip((key, "policy.oracle.seed"), joined, strict=True)]
            together = _seconds("--multirun", *swept, f"run_dir={folder / 'sweep'}")
        print(
            f"  {key:<22} runs alone {sum(alone):6.1f} (the fastest {min(alone):.1f}), one sweep {together:6.1f}: "
            f"{together / sum(alone):.2f} times"
        )


def _seconds(*words: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "pipeline", "label", *_FIXED, *words], check=True, capture_output=True)
    return time.monotonic() - began
