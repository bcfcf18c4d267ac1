"""Tokenizers that several tests of exports share."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.engines.embedded import embedded_model
from pipeline.export.formats.base import Encoder
from pipeline.export.formats.tokens import load_encoder

TINY = Path(__file__).parents[1] / "tiny" / "asset"


@pytest.fixture(scope="session")
def embedded() -> Any:
    """The default model's tokenizer. It has a BOS token, and `ки` is two of its tokens."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(embedded_model())


@pytest.fixture(scope="session")
def marked_folder(embedded: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tokenizer with `ки` and `<extra_0>` as added tokens."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("marked")
    tokenizer = AutoTokenizer.from_pretrained(embedded_model())
    tokenizer.add_tokens(["ки", "<extra_0>"], special_tokens=True)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def marked(marked_folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(marked_folder)


@pytest.fixture(scope="session")
def embedded_encoder() -> Encoder:
    return load_encoder(str(embedded_model()))


@pytest.fixture(scope="session")
def marked_encoder(marked_folder: Path) -> Encoder:
    return load_encoder(str(marked_folder))


@pytest.fixture(scope="session")
def tiny_encoder() -> Encoder:
    """A tokenizer with one token per character and no BOS token."""
    return load_encoder(str(TINY))
