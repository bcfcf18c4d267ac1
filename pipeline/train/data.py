"""A run's labels as a `torch.utils.data.Dataset`, with a sampler and a collator; for `train` and for your own training loop:

    dataset = StepDataset.of_run(TrainConfig(run_dir="out"), tokenizer, max_length=2048)
    loader = DataLoader(dataset, batch_size=16, collate_fn=StepCollator(pad_id=0))

The order is random, but the chains of a batch have similar lengths, which saves padding (`LengthBatchSampler`).

The tokens of a run must fit into memory.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset

from pipeline.config.chain_filter import ChainFilter
from pipeline.config.choices import Layout
from pipeline.config.label import steps_setting
from pipeline.core.ids import content_id
from pipeline.core.tables import LABELS
from pipeline.data.problems import in_validation
from pipeline.data.prompts import encoder
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces, total_places
from pipeline.scorers.encoding import EncodedChain, encode_chain
from pipeline.scorers.heads import pad
from pipeline.scorers.settings import unescaped
from pipeline.storage.location import storage_at
from pipeline.storage.stored_labels import refuse_without
from pipeline.storage.stored_run import readable_identity, readable_run
from pipeline.train.settings import TrainConfig, TrainTarget
from pipeline.train.targets import COLUMNS, IGNORED, StepTarget, places_of, step_targets, used_by

BY_CONSENSUS = "consensus"
"""What leaves out the chains that have no labels by consensus."""
BATCHES_SORTED = 50
"""Number of batches whose chains are drawn together and then sorted by length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainChain:
    """A chain as tokens, with a target for each step whose last token is in them."""

    chain_id: str
    encoded: EncodedChain
    targets: tuple[StepTarget, ...]


def steps_of_run(run_dir: str) -> str | None:
    """How the run divided texts into steps (`DataConfig.steps`); None for a data set whose rows have steps.

    Raises UsageError for no run of this version."""
    identity = readable_identity(storage_at(run_dir))
    splitter, pattern = identity.get("data.splitter"), identity.get("data.pattern")
    if not isinstance(splitter, str) or identity.get("data.layout") != Layout.rows.value:
        return None
    return steps_setting(splitter, pattern if isinstance(pattern, str) else None)


class StepDataset(Dataset):  # type: ignore[misc]  # torch is untyped here
    """Chains with at least one step that the loss can use. `chains`, `steps`: number that was read. `cut`: steps that did not
    fit. `places`: where the targets are. `left_out`: setting, or `BY_CONSENSUS` -> number of the chains that it leaves
    out; these are not in `chains`."""

    def __init__(
        self,
        items: Sequence[TrainChain],
        *,
        chains: int,
        steps: int,
        cut: int,
        places: TargetPlaces = NO_PLACES,
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        self.items = list(items)
        self.chains = chains
        self.steps = steps
        self.cut = cut
        self.places = places
        self.left_out = dict(left_out or {})

    @classmethod
    def of_run(
        cls, config: TrainConfig, tokenizer: Any, *, max_length: int, held_out: bool | None = None
    ) -> "StepDataset":
        """The chains of `config.run_dir` with the targets of the settings. `held_out`: True for the validation problems only,
        False for the others only, None for all.

        Raises UsageError for no run of this version, an unfinished one without `config.partial`, neutral steps without
        `config.neutral`, and a `soft` that the labels do not have; InputError for a bound on a number that no chain of
        the run has; StoreError for a damaged file."""
        run = readable_run(storage_at(config.run_dir), partial=config.partial)
        refuse_without(run, config.soft)
        return cls.of_rows(run.rows(LABELS, COLUMNS), config, tokenizer, max_length=max_length, held_out=held_out)

    @classmethod
    def of_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        config: TrainConfig,
        tokenizer: Any,
        *,
        max_length: int,
        held_out: bool | None = None,
    ) -> "StepDataset":
        """The same from rows of `labels` with `targets.COLUMNS`. Raises UsageError and InputError as `of_run` does."""
        encode, separator = encoder(tokenizer), unescaped(config.separator)
        items: list[TrainChain] = []
        left_out: Counter[str] = Counter()
        chain_filter = ChainFilter(config)
        chains = steps = cut = 0
        places = NO_PLACES
        for row in rows:
            graded = bool(row["root_n_rollouts"]) or any(row["n_rollouts"])
            reason = chain_filter.reason(row["p_outcome"], row["root_value"], graded=graded)
            if held_out is not None and held_out != in_validation(row["problem"], config.validation, config.seed):
                continue
            if reason is not None:
                left_out[reason.setting] += 1
                continue
            if row.get("left_out") is not None and config.target is not TrainTarget.outcome:
                left_out[BY_CONSENSUS] += 1
                continue
            encoded = encode_chain(
                encode,
                row["problem"],
                row["steps"],
                separator=separator,
                bos=tokenizer.bos_token_id,
                max_length=max_length,
            )
            targets = tuple(step_targets(row, config)[: len(encoded.ends)])
            chains, steps, cut = chains + 1, steps + len(row["steps"]), cut + encoded.left_out
            places = total_places([places, places_of(row, targets, config)])
            if any(used_by(config.loss, target) is not None for target in targets):
                items.append(TrainChain(chain_id=row["chain_id"], encoded=encoded, targets=targets))
        chain_filter.check_known(config.run_dir)
        return cls(items, chains=chains, steps=steps, cut=cut, places=places, left_out=left_out)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> TrainChain:
        return self.items[index]

    @property
    def digest(self) -> str:
        """A hash of all tokens and targets."""
        return content_id(*(repr(item) for item in self.items))


class StepCollator:
    """Chains -> tensors of shape (chains, longest): those of `pad`, and those of `target_tensors` at the last tokens of steps.
    At other tokens `labels` is `IGNORED` and the others are 0."""

    def __init__(self, pad_id: int) -> None:
        self._pad_id = pad_id

    def __call__(self, items: Sequence[TrainChain]) -> dict[str, torch.Tensor]:
        batch = pad([item.encoded.ids for item in items], self._pad_id)
        for row, item in enumerate(items):
            for name, entries in target_tensors(item.targets).items():
                if name not in batch:
                    rest = IGNORED if name == "labels" else 0
                    batch[name] = torch.full(batch["input_ids"].shape, rest, dtype=entries.dtype)
                batch[name][row, list(item.encoded.ends)] = entries
        return batch


class LengthBatchSampler:
    """A sampler for `torch.utils.data.DataLoader`. The order depends only on `seed` and epoch, so training can resume
    anywhere."""

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self._lengths = lengths
        self._batch = batch
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(f"{self._seed}-{self._epoch}")
        drawn = list(range(len(self._lengths)))
        rng.shuffle(drawn)
        together = self._batch * BATCHES_SORTED
        batches = [
            batch for start in range(0, len(drawn), together) for batch in self._dealt(drawn[start : start + together])
        ]
        rng.shuffle(batches)
        # The smaller batch comes last; elsewhere it would shift all batches after it.
        batches.sort(key=lambda batch: len(batch) < self._batch)
        return (index for batch in batches for index in batch)

    def _dealt(self, drawn: Sequence[int]) -> list[list[int]]:
        ordered = sorted(drawn, key=lambda index: self._lengths[index])
        return [ordered[start : start + self._batch] for start in range(0, len(ordered), self._batch)]


def target_tensors(targets: Sequence[StepTarget]) -> dict[str, torch.Tensor]:
    """Tensors with one entry per step: `labels` (1, 0 or `IGNORED`) and `values` (valid where `value_mask` is
    True)."""
    return {
        "labels": torch.tensor([IGNORED if target.label is None else target.label for target in targets]),
        "values": torch.tensor([target.value or 0.0 for target in targets]),
        "value_mask": torch.tensor([target.value is not None for target in targets]),
    }
