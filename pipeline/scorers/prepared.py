"""What both engines of a model need before its weights: its config.json and tokenizer, and how it reads a chain.

The libraries are loaded by `prepare`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import PlaceError
from pipeline.core.records import ChainText
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.model import ModelScorer, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """`config`, `tokenizer`: as transformers loads them. `context`: the largest number of tokens that they allow. `max_length`:
    that of a chain, by the settings too."""

    config: Any
    tokenizer: Any
    reading: Reading
    context: int
    max_length: int

    def encoded(self, chains: Sequence[ChainText], *, newest_only: bool) -> list[EncodedChain]:
        """The chains in tokens. `newest_only`: only their last steps are read."""
        encoded = [self.reading.encode(chain.problem, chain.steps, self.max_length) for chain in chains]
        return [chain.newest() for chain in encoded] if newest_only else encoded


def prepare(scorer: ModelScorer) -> Prepared:
    """Load config.json and tokenizer and check that the scorer is one for this model. Raises UsageError, and PlaceError without
    the libraries."""
    try:
        from pipeline.scorers import heads
    except ImportError as error:
        raise PlaceError(
            f"{error}: install the train extra: pip install 'stepvalue[train]', or '.[train]' in a checkout"
        ) from error
    own = scorer.settings
    heads.silence_libraries()
    config = heads.load_config(own.model, own.revision)
    scorer.check_architecture(config)
    tokenizer = heads.load_tokenizer(own.model, own.revision)
    context = heads.context_of(config, tokenizer)
    return Prepared(
        config=config,
        tokenizer=tokenizer,
        reading=scorer.reading(tokenizer, config),
        context=context,
        max_length=min(context, own.max_length or context),
    )
