"""Sizes of a model from its Hugging Face `config.json`. Pure.

Supported are decoders whose layers consist of attention and a gated MLP, or of attention and a mixture of such MLPs: the
families in `_DENSE` and `_MIXTURES`. For any other model an error gives the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.hardware import Architecture

_DENSE = frozenset({"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "smollm3", "olmo2"})
_MIXTURES = frozenset({"mixtral", "qwen3_moe"})
_TIED_BY_DEFAULT = frozenset({"gemma", "gemma2", "gemma3_text", "smollm3"})
_WINDOWED_THROUGHOUT = frozenset({"mistral", "mixtral"})
_DTYPE_BYTES = {"float32": 4.0, "float": 4.0, "float16": 2.0, "half": 2.0, "bfloat16": 2.0}
_AUTO_BYTES = 2.0
"""vLLM holds a model in 16 bits by default."""
_METHOD_BITS = {"fp8": 8, "awq": 4, "awq_marlin": 4, "gptq": 4, "gptq_marlin": 4, "bitsandbytes": 4}
"""Bits per weight of a quantization method, where the model's config does not state them."""


class UnknownArchitecture(ValueError):
    """The sizes of a model cannot be derived from its config. The message gives the reason."""


def architecture_of(
    config: Mapping[str, Any], *, dtype: str = "auto", quantization: str | None = None, kv_dtype: str = "auto"
) -> Architecture:
    """The sizes of the model that `config` describes, with weights in `dtype` and a KV cache in `kv_dtype` (vLLM's names).
    Raises UnknownArchitecture."""
    try:
        return _read(config, dtype, quantization, kv_dtype)
    except UnknownArchitecture:
        raise
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnknownArchitecture(f"the model's config has an unexpected form ({error})") from error


def _read(config: Mapping[str, Any], dtype: str, quantization: str | None, kv_dtype: str) -> Architecture:
    text = config.get("text_config") or config
    family = str(text.get("model_type", "none"))
    if family not in _DENSE | _MIXTURES:
        raise UnknownArchitecture(f"the sizes of a model of type {family} are unknown")
    plain_bytes = _DTYPE_BYTES.get(dtype, _AUTO_BYTES)
    bits = _quantised_bits(text.get("quantization_config") or config.get("quantization_config") or {}, quantization)
    layers, hidden, heads = (_count(text, key) for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    head_dim = int(text.get("head_dim") or hidden // heads)
    kv_heads = int(text.get("num_key_value_heads") or heads)
    mixture = _mixture(text, family, layers)
    mlp = 0 if mixture.layers == layers else 3 * hidden * _count(text, "intermediate_size")
    attention = 2 * hidden * head_dim * (heads + kv_heads)
    return Architecture(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=_count(text, "vocab_size"),
        tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", family in _TIED_BY_DEFAULT))),
        body=layers * attention + (layers - mixture.layers) * mlp + mixture.layers * hidden * mixture.experts,
        bytes_per_weight=bits / 8 if bits else plain_bytes,
        bytes_per_embedding=plain_bytes,
        bytes_per_kv=1.0 if kv_dtype.startswith("fp8") else plain_bytes,
        context=_count(text, "max_position_embeddings"),
        experts=mixture.layers * mixture.experts * 3 * hidden * mixture.width,
        expert_share=mixture.used / mixture.experts if mixture.layers else 1.0,
        windowed_layers=_windowed(text, family, layers),
        window=int(text.get("sliding_window") or 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mixture:
    """`layers` mixture layers of `experts` experts each; a token uses `used` of them. `width`: their intermediate size."""

    layers: int = 0
    experts: int = 0
    used: int = 0
    width: int = 0


def _mixture(text: Mapping[str, Any], family: str, layers: int) -> _Mixture:
    if family == "mixtral":
        return _Mixture(
            layers=layers,
            experts=_count(text, "num_local_experts"),
            used=_count(text, "num_experts_per_tok"),
            width=_count(text, "intermediate_size"),
        )
    if family == "qwen3_moe":
        every, dense = int(text.get("decoder_sparse_step") or 1), set(text.get("mlp_only_layers") or ())
        return _Mixture(
            layers=layers // every - sum(layer in range(layers) and (layer + 1) % every == 0 for layer in dense),
            experts=_count(text, "num_experts"),
            used=_count(text, "num_experts_per_tok"),
            width=_count(text, "moe_intermediate_size"),
        )
    return _Mixture()


def _windowed(text: Mapping[str, Any], family: str, layers: int) -> int:
    """The number of layers with sliding-window attention."""
    if not text.get("sliding_window"):
        return 0
    if kinds := text.get("layer_types"):
        return list(kinds).count("sliding_attention")
    return layers if family in _WINDOWED_THROUGHOUT else 0


def _quantised_bits(stored: Mapping[str, Any], asked: str | None) -> int:
    """Bits of a quantized weight; 0 where the model is not quantized. Raises UnknownArchitecture."""
    method = asked or stored.get("quant_method")
    if not method:
        return 0
    groups = stored.get("config_groups") or {}
    in_groups = ((group.get("weights") or {}).get("num_bits") or 0 for group in groups.values())
    bits = stored.get("bits") or max(in_groups, default=0)
    if stored.get("load_in_8bit"):
        bits = 8
    if bits := bits or _METHOD_BITS.get(str(method), 0):
        return int(bits)
    raise UnknownArchitecture(f"the number of bits per weight under the quantization method {method} is unknown")


def _count(text: Mapping[str, Any], key: str) -> int:
    value = text.get(key)
    if not isinstance(value, int) or value < 1:
        raise UnknownArchitecture(f"the model's config does not state {key}")
    return value
