"""A shard is named by its content, and a damaged one is never read as intact."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import StoreError
from pipeline.core.records import Reject, RejectReason, RowLocation
from pipeline.core.tables import REJECTS
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import ShardRecord, read_shard, verified_file, write_shard
from pipeline.storage.storage import sha256_of

UNIT = "0" * 20


def table(*details: str) -> pa.Table:
    return REJECTS.to_table(
        [
            Reject(location=RowLocation(file="f", line=line), reason=RejectReason.NOT_JSON, detail=detail)
            for line, detail in enumerate(details, start=1)
        ]
    )


@pytest.fixture
def shard(tmp_path: Path) -> ShardRecord:
    return write_shard(LocalStorage(tmp_path), "rejects", UNIT, [table("a", "b"), table("c" * 500)])


def test_a_shard_comes_back_group_by_group(tmp_path: Path, shard: ShardRecord) -> None:
    assert read_shard(LocalStorage(tmp_path), shard).equals(pa.concat_tables([table("a", "b"), table("c" * 500)]))
    file = verified_file(LocalStorage(tmp_path), shard)
    assert [file.read_row_group(group).num_rows for group in range(file.num_row_groups)] == [2, 1]
    assert file.read_row_group(1).equals(table("c" * 500))


def test_its_name_is_its_content(tmp_path: Path, shard: ShardRecord) -> None:
    assert shard.rows == 3
    assert shard.sha256 == sha256_of((tmp_path / shard.file).read_bytes())
    assert shard.file == f"rejects/rejects-{UNIT}-{shard.sha256[:12]}.parquet"
    again = write_shard(LocalStorage(tmp_path), "rejects", UNIT, [table("a", "b"), table("c" * 500)])
    other = write_shard(LocalStorage(tmp_path), "rejects", UNIT, [table("a", "b")])
    assert again == shard
    assert other.file != shard.file
    assert sorted(path.name for path in (tmp_path / "rejects").iterdir()) == sorted(
        Path(record.file).name for record in (shard, other)
    )


def test_pages_carry_checksums_and_are_compressed(tmp_path: Path, shard: ShardRecord) -> None:
    path = tmp_path / shard.file
    column = pq.ParquetFile(path).metadata.row_group(1).column(5)
    assert column.compression == "ZSTD"
    plain = path.read_bytes()
    at = column.data_page_offset + column.total_compressed_size - 3
    path.write_bytes(plain[:at] + bytes([plain[at] ^ 1]) + plain[at + 1 :])
    with pytest.raises(OSError, match="CRC checksum"):
        pq.read_table(path, page_checksum_verification=True)


def test_one_flipped_bit_anywhere_and_a_cut_or_grown_file_are_seen(tmp_path: Path, shard: ShardRecord) -> None:
    path = tmp_path / shard.file
    whole = path.read_bytes()
    places = [*range(0, len(whole), 37), len(whole) - 1]
    flipped = [whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :] for at in places]
    for content in (*flipped, b"", whole[:4], whole[: len(whole) // 2], whole[:-1], whole + b"\0"):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="is damaged") as caught:
            read_shard(LocalStorage(tmp_path), shard)
        assert str(path) in str(caught.value)


def test_a_lost_file_is_named(tmp_path: Path, shard: ShardRecord) -> None:
    (tmp_path / shard.file).unlink()
    with pytest.raises(StoreError, match=r"rejects-.*\.parquet is missing: start the command of this run"):
        read_shard(LocalStorage(tmp_path), shard)


def test_a_record_with_other_rows_is_refused(tmp_path: Path, shard: ShardRecord) -> None:
    with pytest.raises(StoreError, match="has 3 rows, but its commit record states 4"):
        read_shard(LocalStorage(tmp_path), replace(shard, rows=4))


def test_a_damaged_file_under_the_same_name_is_set_aside_and_written_again(tmp_path: Path, shard: ShardRecord) -> None:
    path = tmp_path / shard.file
    path.write_bytes(b"junk")
    again = write_shard(LocalStorage(tmp_path), "rejects", UNIT, [table("a", "b"), table("c" * 500)])
    assert again == shard
    assert read_shard(LocalStorage(tmp_path), shard).num_rows == 3
    assert [kept.read_bytes() for kept in (tmp_path / "damaged").iterdir()] == [b"junk"]


@given(st.lists(st.lists(st.text(max_size=20), max_size=4), min_size=1, max_size=4))
def test_any_groups_come_back(tmp_path_factory: pytest.TempPathFactory, groups: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("groups")
    tables = [table(*details) for details in groups]
    record = write_shard(LocalStorage(folder), "rejects", UNIT, tables)
    assert record.rows == sum(map(len, groups))
    assert read_shard(LocalStorage(folder), record).equals(pa.concat_tables(tables).combine_chunks())
