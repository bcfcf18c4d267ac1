"""`python -m tests.bench.tiny.train short | long`: train a tiny policy again and write its asset.

A Llama of 0.8 million parameters over characters learns to continue a problem by a chain. Values of its prefixes lie between 0
and 1: the one for short chains sees right chains and is stopped while it still errs, the one for long chains sees chains with
slips, of which some are corrected (`slips`).

The recipe for long chains is that of the weights that are here but for their first 2,880 steps, and has not been run as a
whole. Two cycles had more slips, and returns after slips alone, which the model did not learn to tell from right lines; 480
steps had returns as often after right lines, whose results it learned to copy; the last 480 had the chains of `slips`. That
took 0.55 s for a step on a free core, half an hour in all.

The seed is fixed; weights still differ in their last digits between processors, and a file of truth belongs to the weights it
was made with. The asset is written at every report: the last one counts.
"""

import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.bench.tiny.slips import slipping
from tests.tiny.arithmetic import Exercise, random_exercise
from tests.tiny.policy import LONG, POLICIES, SHORT, TinyPolicy

SEED = 20
THREADS = 1
"""A step takes 0.2 s with one thread and 0.14 s with two; on two busy cores 0.35 s with one and 0.9 s with two."""
BATCH = 32
BATCHES_SORTED = 32
"""Batches that are drawn together and made of exercises of like length, which leaves little padding."""
WARM_UP = 100
HELD_OUT = 400
REPORTS = 15
END, UNKNOWN = "</s>", "<unk>"
_IGNORED = -100

Text = tuple[list[int], int]
"""Token ids of a problem with its chain, and how many of them are the problem's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Steps over which the learning rate falls, from `rate`."""

    steps: int
    rate: float = 3e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a policy learns from, and for how long."""

    cycles: tuple[Cycle, ...]
    longest: int
    """Tokens of a problem with its chain. Longer ones are left out."""
    chain: Callable[[random.Random, Exercise], list[str]]


RECIPES = {
    SHORT.name: Recipe(cycles=(Cycle(steps=1_500),), longest=192, chain=lambda _rng, exercise: exercise.steps),
    LONG.name: Recipe(
        cycles=(Cycle(steps=1_200), Cycle(steps=1_200), Cycle(steps=960, rate=1e-3)), longest=320, chain=slipping
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Random problems with their chains, as token ids."""

    rng: random.Random
    policy: TinyPolicy
    recipe: Recipe
    tokenizer: PreTrainedTokenizerFast

    def held_out(self) -> list[Text]:
        """Problems with their right chains."""
        exercises = (random_exercise(self.rng, self.policy.size) for _ in range(HELD_OUT))
        return [self._text(exercise, exercise.steps) for exercise in exercises]

    def batches(self) -> Iterator[Sequence[Text]]:
        """Problems with chains to learn from, without end."""
        while True:
            texts = [text for _ in range(BATCH * BATCHES_SORTED) if (text := self._to_learn())]
            texts.sort(key=lambda text: len(text[0]))
            starts = list(range(0, len(texts), BATCH))
            self.rng.shuffle(starts)
            yield from (texts[start : start + BATCH] for start in starts)

    def _to_learn(self) -> Text | None:
        exercise = random_exercise(self.rng, self.policy.size)
        text = self._text(exercise, self.recipe.chain(self.rng, exercise))
        return text if len(text[0]) <= self.recipe.longest else None

    def _text(self, exercise: Exercise, lines: Sequence[str]) -> Text:
        asked = self.tokenizer.encode(f"{exercise.problem}\n")
        chain = self.tokenizer.encode("\n".join(lines))
        return [*asked, *chain, self.tokenizer.eos_token_id], len(asked)


def main(policy: TinyPolicy) -> None:
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    recipe = RECIPES[policy.name]
    tokenizer = character_tokenizer(policy.alphabet, policy.context)
    model = LlamaForCausalLM(shape(tokenizer))
    texts = Texts(rng=random.Random(SEED), policy=policy, recipe=recipe, tokenizer=tokenizer)
    held_out = texts.held_out()
    tokenizer.save_pretrained(policy.asset)
    for cycle in recipe.cycles:
        learn(model, texts, held_out, cycle)


def learn(model: LlamaForCausalLM, texts: Texts, held_out: Sequence[Text], cycle: Cycle) -> None:
    steps = cycle.steps
    optimizer = torch.optim.AdamW(model.parameters(), lr=cycle.rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    began = time.monotonic()
    for step, batch in zip(range(1, steps + 1), texts.batches(), strict=False):
        loss = _loss(model, batch)
        loss.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % (steps // REPORTS) == 0:
            seconds = time.monotonic() - began
            print(f"step {step} of {steps}, {seconds:.0f} s: solves {_solved(model, held_out):.3f}", flush=True)
            _write(model, texts.policy)


def character_tokenizer(alphabet: str, context: int) -> PreTrainedTokenizerFast:
    """A token for each character, and one for the end."""
    vocabulary = {token: number for number, token in enumerate([END, UNKNOWN, *alphabet])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )


def shape(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=tokenizer.model_max_length,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )


def _rate(step: int, steps: int) -> float:
    return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1.02 + 0.98 * math.cos(math.pi * min(1.0, step / steps)))


def _write(model: LlamaForCausalLM, policy: TinyPolicy) -> None:
    half = {name: weights.to(torch.float16) for name, weights in model.state_dict().items()}
    copy = LlamaForCausalLM(model.config).to(torch.float16)
    copy.load_state_dict(half)
    copy.save_pretrained(policy.asset)


def _loss(model: LlamaForCausalLM, batch: Sequence[Text]) -> torch.Tensor:
    """Minus the log-probability of each chain token, zero elsewhere: batch x length."""
    longest = max(len(ids) for ids, _ in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    targets = torch.full((len(batch), longest), _IGNORED)
    for row, (text, asked) in enumerate(batch):
        ids[row, : len(text)] = torch.tensor(text)
        targets[row, asked : len(text)] = torch.tensor(text[asked:])
    logits = model(input_ids=ids[:, :-1]).logits
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets[:, 1:], ignore_index=_IGNORED, reduction="none"
    )


def _solved(model: LlamaForCausalLM, texts: Sequence[Text]) -> float:
    """The mean probability of the right chain, which is how often the model solves an exercise without a detour."""
    with torch.no_grad():
        return float(_loss(model, texts).sum(1).neg().exp().mean())


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in POLICIES:
        raise SystemExit(f"usage: python -m tests.bench.tiny.train {' | '.join(POLICIES)}")
    main(POLICIES[sys.argv[1]])
