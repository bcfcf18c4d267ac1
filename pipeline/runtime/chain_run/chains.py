"""The chains of a run over chains: those that a run of `label` has, as tables, and what a scorer or a judge gets of them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from pipeline.core.ids import content_id
from pipeline.core.records import ChainText
from pipeline.core.table import Table
from pipeline.core.tables import CHAINS, GOLD_ANSWERS
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.stored_labels import frames_of, label_shards
from pipeline.storage.stored_run import readable_run

BLOCK = 1024
"""Rows of files that are read together."""


def labelled_chains(run_dir: str, schema: pa.Schema, *, partial: bool) -> Iterator[pa.Table]:
    """The chains of a run of `label` in the order of its input, in blocks of `schema`. An unfinished run is accepted only with
    `partial`. Raises UsageError and StoreError for a run that cannot be read."""
    storage = storage_at(run_dir)
    run = readable_run(storage, partial=partial)
    stored = [name for name in schema.names if name != "row"]
    number = 0
    for frame in frames_of(run, stored):
        rows = pa.array(range(number, number + frame.height), pa.int64())
        number += frame.height
        yield frame.to_arrow().add_column(0, "row", rows).select(schema.names).cast(schema)


def labelled_identity(run_dir: str, *, partial: bool) -> dict[str, object]:
    """What a run of `label` adds to the identity of a run over its chains. Raises UsageError where it has no labels, and as
    `labelled_chains` does."""
    storage = storage_at(run_dir)
    run = readable_run(storage, partial=partial)
    labels = [shard.sha256 for shard in label_shards(run)]
    return {"source": run.identity[STAGED_INPUT], "input": content_id("labels", *labels)}


def numbered_rows(chains: Iterator[ChainText], table: Table[ChainText]) -> Iterator[pa.Table]:
    """The chains of files in blocks of a table, with their numbers in the input as `row`."""
    numbered = (replace(chain, row=number) for number, chain in enumerate(chains))
    return map(table.to_table, iter(lambda: list(islice(numbered, BLOCK)), []))


_SHOWN = ("chain_id", "problem_id", "problem", "steps", "prefix_ids")
"""The columns of chains that everybody may see."""


def chain_texts(chains: pa.Table) -> list[ChainText]:
    """What a scorer or a judge gets of chains, with known answers where the table has the column `gold_answers`."""
    shown = [name for name in (*_SHOWN, GOLD_ANSWERS) if name in chains.column_names]
    return CHAINS.from_table(chains.select(shown))


def values(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()
