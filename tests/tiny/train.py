"""`python -m tests.tiny.train`: train the tiny policy again and write `tests/tiny/asset`.

A Llama of 0.8 million parameters over characters learns to continue a problem by its right chain. It is stopped while it
still errs, so that the values of its prefixes lie between 0 and 1. The seed is fixed; weights still differ in their last
digits between processors, and `truth.jsonl` belongs to the weights it was made with.
"""

import math
import random
import time
from collections.abc import Iterator, Sequence

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.tiny.arithmetic import ALPHABET, Exercise, random_exercise
from tests.tiny.policy import ASSET

SEED = 20
THREADS = 1
"""A step takes 0.2 s with one thread and 0.14 s with two; on two busy cores 0.35 s with one and 0.9 s with two."""
STEPS = 1_500
BATCH = 32
BATCHES_SORTED = 32
"""Batches that are drawn together and made of exercises of like length, which leaves little padding."""
LEARNING_RATE = 3e-3
WARM_UP = 100
HELD_OUT = 400
REPORTS = 15
END, UNKNOWN = "</s>", "<unk>"
MAX_LENGTH = 192
_IGNORED = -100

Text = tuple[list[int], int]
"""Token ids of a problem with its chain, and how many of them are the problem's."""


def main() -> None:
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    tokenizer = character_tokenizer()
    model = LlamaForCausalLM(shape(tokenizer))
    held_out = [_text(tokenizer, random_exercise(rng)) for _ in range(HELD_OUT)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _rate)
    began = time.monotonic()
    for step, batch in zip(range(1, STEPS + 1), _batches(rng, tokenizer), strict=False):
        loss = _loss(model, batch).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % (STEPS // REPORTS) == 0:
            seconds = time.monotonic() - began
            print(f"step {step} of {STEPS}, {seconds:.0f} s: solves {_solved(model, held_out):.3f}", flush=True)
    model.to(torch.float16).save_pretrained(ASSET)
    tokenizer.save_pretrained(ASSET)


def character_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each character, and one for the end."""
    vocabulary = {token: number for number, token in enumerate([END, UNKNOWN, *ALPHABET])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        model_max_length=MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    )


def shape(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """The model's size."""
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )


def _text(tokenizer: PreTrainedTokenizerFast, exercise: Exercise) -> Text:
    asked = tokenizer.encode(f"{exercise.problem}\n")
    chain = tokenizer.encode("\n".join(exercise.steps))
    return [*asked, *chain, tokenizer.eos_token_id], len(asked)


def _batches(rng: random.Random, tokenizer: PreTrainedTokenizerFast) -> Iterator[Sequence[Text]]:
    while True:
        texts = [_text(tokenizer, random_exercise(rng)) for _ in range(BATCH * BATCHES_SORTED)]
        texts.sort(key=lambda text: len(text[0]))
        starts = list(range(0, len(texts), BATCH))
        rng.shuffle(starts)
        yield from (texts[start : start + BATCH] for start in starts)


def _rate(step: int) -> float:
    return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1.02 + 0.98 * math.cos(math.pi * min(1.0, step / STEPS)))


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
    main()
