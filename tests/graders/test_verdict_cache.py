"""The cache of grades returns what was added, and drops the least recently used grade."""

import pytest

from pipeline.core.records import Grade, Verdict
from pipeline.graders import process_pool
from pipeline.graders.process_pool import VerdictCache


def test_what_is_used_stays_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "CACHE_ENTRIES", 2)
    grades = {key: Grade(verdict=Verdict.CORRECT, answer=key, ms=1.0) for key in "abc"}
    known: VerdictCache[str] = VerdictCache()
    known.keep("a", grades["a"])
    known.keep("b", grades["b"])
    assert known.get("a") is grades["a"]
    known.keep("c", grades["c"])
    assert [known.get(key) for key in "abc"] == [grades["a"], None, grades["c"]]
