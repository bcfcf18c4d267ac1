"""Small random models of the real class and shape of published PRMs, with tokenizers of their kind, for the tests of scorers.

The tokenizers cut texts as the real ones do: with the pattern of Qwen2 or Llama 3 and merges of bytes, or with Mistral's
SentencePiece rules (a blank before every text, bytes for what is unknown). They are trained on a few sentences.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

PROBLEM = "Sue has 18 pink flamingos. How many are left after 6 of them are painted white?"
STEPS = (
    "There are 18 flamingos.",
    "6 of them are painted white, so 18 - 6 = 12 are left.",
    "The answer is \\boxed{12}.",
)
CONTEXT = 2048
_WIDTH = 64
"""Of two heads: vLLM has no kernels for heads of less than 32."""
_TEXTS = [
    *(PROBLEM, *STEPS, "user system assistant correct incorrect + - \n\n Step 1: Step 2: руки ки ки\n"),
    "assistant\nuser\nsystem\ncorrect\nincorrect\n",
    "Please reason step by step, and put your final answer within \\boxed{}. Problem Task Sotluion **",
] * 4
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN, LLAMA_PATTERN = _WORDS % "", _WORDS % "{1,3}"
CHATML = (
    "{% for message in messages %}{% if loop.first and message.role != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""What Qwen2.5's template writes for plain turns."""
LLAMA3 = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}"
    "{% set messages = messages[1:] %}{% else %}{% set system = '' %}{% endif %}"
    "{{ '<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
    "Today Date: 26 Jul 2024\n\n' + system + '<|eot_id|>' }}"
    "{% for message in messages %}{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' "
    "+ message.content | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
"""What the template of Llama 3.1 writes for plain turns: it removes blanks around what a message says."""


def _of_bytes(pattern: str, special: Sequence[AddedToken]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        _TEXTS, trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.add_tokens(list(special))
    return tokenizer


def qwen_tokenizer(*, tag_is_special: bool = True, tag: str | None = "<extra_0>", template: str | None = CHATML) -> Any:
    """Like that of Qwen2.5-Math-PRM."""
    special = [AddedToken(text, special=True) for text in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    if tag is not None:
        special.append(AddedToken(tag, special=tag_is_special))
    return PreTrainedTokenizerFast(
        tokenizer_object=_of_bytes(QWEN_PATTERN, special),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=template,
        model_max_length=CONTEXT,
    )


def skywork_tokenizer(*, bos: str | None = "<|im_start|>") -> Any:
    """Like that of Skywork-o1-Open-PRM: of Qwen2.5, with a BOS token."""
    made = qwen_tokenizer(tag=None)
    if bos is not None:
        made.bos_token = bos
    return made


def llama_tokenizer(*, template: str | None = LLAMA3) -> Any:
    """Like that of Llama 3.1, which RLHFlow's and FoVer's PRMs have."""
    names = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    tokenizer = _of_bytes(LLAMA_PATTERN, [AddedToken(name, special=True) for name in names])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A",
        pair="<|begin_of_text|> $A <|begin_of_text|> $B",
        special_tokens=[("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|begin_of_text|>",
        eos_token="<|eot_id|>",
        chat_template=template,
        model_max_length=CONTEXT,
    )


def mistral_tokenizer(*, words: Sequence[str] = ()) -> Any:
    """Like that of Math-Shepherd: SentencePiece's rules. `words`: further tokens, merged of their characters."""
    vocab, merges = _sentence_pieces(tuple(words))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", vocab["<s>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", model_max_length=CONTEXT
    )


@cache
def _sentence_pieces(words: tuple[str, ...]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex("\n+"), "removed"), pre_tokenizers.Split("▁", "merged_with_next")]
    )
    learner.train_from_iterator(_TEXTS, trainers.BpeTrainer(vocab_size=500, show_progress=False))
    found = json.loads(learner.to_str())["model"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += [piece for piece in found["vocab"] if piece not in pieces]
    merges = [(str(left), str(right)) for left, right in found["merges"]]
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in pieces:
                merges.append((word[: end - 1], word[end - 1]))
                pieces.append(word[:end])
            if word[end - 1] not in pieces:
                pieces.append(word[end - 1])
    return {piece: number for number, piece in enumerate(pieces)}, merges


def _sizes(tokenizer: Any, width: int = _WIDTH) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer) + 3,
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.5,
        "use_cache": False,
    }


def _saved(folder: Path, module: Any, tokenizer: Any, **config: object) -> Path:
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return folder


def add_weights(folder: Path, found: dict[str, torch.Tensor], *, drop: str = "lm_head") -> None:
    """Put further weights into the file of a model, and remove those whose name begins with `drop`."""
    path = folder / "model.safetensors"
    kept = {name: tensor for name, tensor in load_file(path).items() if not name.startswith(drop)}
    save_file({**kept, **found}, path, metadata={"format": "pt"})


def split_weights(folder: Path) -> None:
    """Divide the file of a model in two, as large models are stored."""
    found = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(found)
    halves = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: found[name] for name in part}, folder / file, metadata={"format": "pt"})
    where = {name: file for file, part in halves.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def qwen_prm(folder: Path, tokenizer: Any = None, *, scale: float = 1.0, width: int = _WIDTH) -> Path:
    """`Qwen2ForProcessRewardModel` with the tensors of its checkpoints. `scale`: of the last layer."""
    tokenizer = tokenizer or qwen_tokenizer()
    torch.manual_seed(11)
    module = Qwen2ForCausalLM(Qwen2Config(**_sizes(tokenizer, width), tie_word_embeddings=False))
    code = {
        "AutoConfig": "configuration_qwen2_rm.Qwen2RMConfig",
        "AutoModel": "modeling_qwen2_rm.Qwen2ForProcessRewardModel",
    }
    _saved(folder, module, tokenizer, architectures=["Qwen2ForProcessRewardModel"], auto_map=code)
    head = {
        "score.0.weight": torch.randn(width, width) / 4,
        "score.0.bias": torch.randn(width),
        "score.2.weight": scale * torch.randn(2, width) / 4,
        "score.2.bias": torch.randn(2),
    }
    add_weights(folder, head)
    return folder


def skywork_prm(folder: Path, tokenizer: Any = None) -> Path:
    """Skywork's `Qwen2ForPrmModel` with the tensors of its checkpoints."""
    tokenizer = tokenizer or skywork_tokenizer()
    torch.manual_seed(12)
    module = Qwen2ForCausalLM(Qwen2Config(**_sizes(tokenizer), tie_word_embeddings=False))
    _saved(folder, module, tokenizer, architectures=["Qwen2ForPrmModel"])
    head = {"v_head.summary.weight": torch.randn(1, _WIDTH) / 4, "v_head.summary.bias": torch.randn(1)}
    add_weights(folder, head, drop="none")
    return folder


def llama_prm(folder: Path, tokenizer: Any = None) -> Path:
    """A causal model of Llama's class, which RLHFlow's and FoVer's PRMs have."""
    tokenizer = tokenizer or llama_tokenizer()
    torch.manual_seed(13)
    return _saved(folder, LlamaForCausalLM(LlamaConfig(**_sizes(tokenizer), tie_word_embeddings=False)), tokenizer)


def mistral_prm(folder: Path, tokenizer: Any = None) -> Path:
    """A causal model of Mistral's class, which Math-Shepherd's PRM has."""
    tokenizer = tokenizer or mistral_tokenizer()
    torch.manual_seed(14)
    module = MistralForCausalLM(MistralConfig(**_sizes(tokenizer), sliding_window=None, tie_word_embeddings=False))
    return _saved(folder, module, tokenizer)
