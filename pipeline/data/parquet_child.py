"""The process that reads Parquet and Arrow files, see `parquet`. It is run by its path, and imports nothing of this project.

A small file can stand for any amount of memory: pages are compressed, equal texts are stored once, runs of equal values are
numbers of repetitions, and the sizes in its footer are claims. So this process has a limit, given as its argument in bytes, and
ends where a file passes it. A request is a line of JSON on standard input. The answer on standard output is a line of JSON with
an `error` or null, and without an error a stream of Arrow record batches and another such line.
"""

import json
import os
import resource
import sys
from typing import Any

PIECE_BYTES = 64 * 2**20
"""Larger batches are sent row by row. Sizes are those of objects of Python."""
VALUE_BYTES = 32
"""A number as an object of Python, with its place in a list."""
ROW_BYTES = 128 * 2**20
"""A larger row is sent as an empty batch with its size."""
SIZE = "size"
ARROW = ".arrow"
"""How the name of a stream of Arrow record batches ends, such as `save_to_disk` of the package `datasets` writes."""
_BUFFER_BYTES = 2**18
"""Of a column, read at once. Without it, pyarrow reads all of a column's row group."""


def main() -> None:
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        path = os.fsdecode(bytes.fromhex(request["path"]))
        try:
            _answer(path, request["batch"], request["skip"])
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  whatever is wrong with the file, or with pyarrow, is said
            _say(error)


def _answer(path: str, rows: int, skip: int) -> None:
    """Send the rows of a file but for the first `skip`, in batches of at most `rows`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # pyarrow takes no name with bytes that are not UTF-8.
    with open(path, "rb") as source:
        if path.lower().endswith(ARROW):
            reader = pa.ipc.open_stream(source)
            schema, batches = reader.schema, _pieces(reader, rows)
        else:
            file = pq.ParquetFile(source, page_checksum_verification=True, buffer_size=_BUFFER_BYTES)
            schema, batches = file.schema_arrow, file.iter_batches(batch_size=rows, use_threads=False)
        _say(None)
        output: Any = sys.stdout.buffer
        error = None
        with pa.ipc.new_stream(output, schema) as stream:
            try:
                for batch in batches:
                    passed = min(skip, batch.num_rows)
                    skip -= passed
                    _send(stream, batch.slice(passed))
            except MemoryError:
                raise
            except Exception as raised:  # noqa: BLE001  as above
                error = raised
    _say(error)


def _pieces(batches: Any, rows: int) -> Any:
    return (batch.slice(start, rows) for batch in batches for start in range(0, batch.num_rows, rows))


def _send(stream: Any, batch: Any) -> None:
    if _size(batch.columns) <= PIECE_BYTES:
        stream.write_batch(batch)
        return
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        size = _size(row.columns)
        if size <= ROW_BYTES:
            stream.write_batch(row)
        else:
            stream.write_batch(batch.slice(0, 0), custom_metadata={SIZE: str(size)})


def _size(columns: Any) -> int:
    """About what the values of columns take as objects of Python, in bytes. There even a bit has a place in a list."""
    import pyarrow.types as types

    size = 0
    for column in columns:
        size += VALUE_BYTES * len(column)
        if types.is_struct(column.type):
            size += _size(column.flatten())
        elif types.is_map(column.type):
            size += 2 * VALUE_BYTES * (column.offsets[-1].as_py() - column.offsets[0].as_py()) + column.nbytes
        elif types.is_nested(column.type) and not types.is_union(column.type):
            size += _size([column.flatten()])
        else:
            size += column.nbytes
    return size


def _say(error: Exception | None) -> None:
    sys.stdout.buffer.write(json.dumps({"error": error and str(error)}).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
