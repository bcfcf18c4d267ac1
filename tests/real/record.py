"""`python -m tests.real.record RUN_DIR [FILE]`: keeps what the rollouts of a finished run came to, without any text, in FILE
(default tests/real/gsm8k.jsonl)."""

import sys
from pathlib import Path

import polars as pl

from tests.real.recorded import GSM8K, lines_of

_COLUMNS = ("prefix_id", "issue_index", "verdict", "finish", "n_tokens")


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print("usage: python -m tests.real.record RUN_DIR [FILE]", file=sys.stderr)
        return 2
    path = Path(sys.argv[2]) if len(sys.argv) == 3 else GSM8K
    rollouts = pl.scan_parquet(f"{sys.argv[1]}/rollouts/*.parquet").select(_COLUMNS).collect()
    lines = lines_of(rollouts.iter_rows(named=True))
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(f"{len(lines):,} prefixes, {path.stat().st_size:,} bytes: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
