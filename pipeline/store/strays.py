"""Label files that no commit record names: a worker was killed between writing a file and committing it.

Readers of this package follow commit records and never see them; people read `labels/*.parquet`, so they are set aside.
"""

from pathlib import Path

from pipeline.store.commits import UNIT, committed

ASIDE = ".strays"


def set_aside_stray_labels(run_dir: Path) -> list[str]:
    """Move them to `.strays/` and return their names. Only for the driver that holds the run's lock, with no worker left."""
    named = {shard.file for commit in committed(run_dir, UNIT) for shard in commit.shards}
    strays = [path for path in sorted((run_dir / "labels").glob("*.parquet")) if f"labels/{path.name}" not in named]
    if strays:
        (run_dir / ASIDE).mkdir(exist_ok=True)
    for path in strays:
        path.rename(run_dir / ASIDE / path.name)
    return [path.name for path in strays]
