"""Fixtures of engines."""

import pytest

from pipeline.engines.oracle import ByteTokenizer


@pytest.fixture
def quick_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, the tokenizer of the test servers, and no API key from the environment."""
    monkeypatch.setattr("pipeline.engines.openai.wire.FIRST_PAUSE_SECONDS", 0.002)
    monkeypatch.setattr("pipeline.engines.openai.wire.LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("pipeline.engines.openai.engine.load_tokenizer", lambda *_: ByteTokenizer())
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
