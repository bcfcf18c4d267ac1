"""Computes the content hashes that identify problems, prefixes and rollouts, and the names of files.

An id is an 80-bit BLAKE2b hash, written as 20 hexadecimal digits. Among 10^9 ids the probability of any collision is below
10^-6. File names contain only ids, never text of the input or of a model.
"""

import hashlib
import re

ID_DIGITS = 20
_SAFE_NAME = re.compile(r"[a-z]+-[0-9a-f]{20}-([0-9a-f]{12}\.parquet|[0-9]{5}\.json)")
MAX_NUMBER = 99_999
"""Largest number of a record in its sequence."""


def content_id(*parts: str) -> str:
    """The hash of a tuple of texts. Different tuples always give different input to the hash function."""
    pieces: list[bytes] = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        pieces += (len(data).to_bytes(8, "little"), data)
    # One call: a search hashes the texts of all steps before each new one.
    return hashlib.blake2b(b"".join(pieces), digest_size=ID_DIGITS // 2).hexdigest()


def row_content(problem_id: str, chain_id: str | None) -> str:
    """What makes a used row unique in a run: its chain, or its problem if it has no chain."""
    return chain_id or content_id("bare", problem_id)


def rollout_id(prefix_id: str, issue_index: int) -> str:
    """Id of the `issue_index`-th completion of a prefix. It is fixed before sampling, so that nothing is counted twice."""
    return f"{prefix_id}-{issue_index:05d}"


def critique_id(judge: str, chain_id: str, vote: int) -> str:
    """Id of a vote of the judge with this name on a chain. Votes of a chain count from 0."""
    return content_id("critique", judge, chain_id, str(vote))


def shard_name(kind: str, unit_id: str, sha256: str) -> str:
    """`kind-unit-sha.parquet`. Raises ValueError unless `kind` is a plain word and the ids are hexadecimal digits."""
    return _safe(f"{kind}-{unit_id}-{sha256[:12]}.parquet")


def record_name(kind: str, sequence_id: str, number: int) -> str:
    """`kind-sequence-number.json`. Raises ValueError as `shard_name` does, and for a number above `MAX_NUMBER`."""
    return _safe(f"{kind}-{sequence_id}-{number:05d}.json")


def record_parts(name: str) -> tuple[str, str, int] | None:
    """The inverse of `record_name`: kind, sequence and number; None for any other name."""
    if not name.endswith(".json") or not is_our_name(name):
        return None
    kind, sequence_id, number = name.removesuffix(".json").split("-")
    return kind, sequence_id, int(number)


def is_our_name(name: str) -> bool:
    """Whether `shard_name` or `record_name` can create this file name."""
    return _SAFE_NAME.fullmatch(name) is not None


def is_shard_file(file: str) -> bool:
    """Whether a path is `folder/name` with a name from `shard_name`. Readers refuse every other path."""
    folder, _, name = file.partition("/")
    return folder.isascii() and folder.isalpha() and name.endswith(".parquet") and bool(_SAFE_NAME.fullmatch(name))


def _safe(name: str) -> str:
    if not is_our_name(name):
        raise ValueError(f"unsafe file name {name!r}")
    return name
