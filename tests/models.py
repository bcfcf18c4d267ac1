"""The sizes that published models state in their `config.json`, and what is known of them."""

from typing import Any

QWEN_05B: dict[str, Any] = {
    "model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "intermediate_size": 4864,
    "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768,
    "tie_word_embeddings": True, "sliding_window": 32768, "use_sliding_window": False,
}  # fmt: skip
QWEN_15B: dict[str, Any] = {
    "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 1536, "intermediate_size": 8960,
    "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}  # fmt: skip
QWEN_7B: dict[str, Any] = {
    "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}  # fmt: skip
QWEN_72B: dict[str, Any] = {
    "model_type": "qwen2", "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 29568,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064, "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}  # fmt: skip
QWEN3_8B: dict[str, Any] = {
    "model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "intermediate_size": 12288, "head_dim": 128,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 151936, "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_8B: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_405B: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 126, "hidden_size": 16384, "intermediate_size": 53248,
    "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}  # fmt: skip
MISTRAL_7B: dict[str, Any] = {
    "model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768,
    "sliding_window": 4096,
}  # fmt: skip
GEMMA2_9B: dict[str, Any] = {
    "model_type": "gemma2", "num_hidden_layers": 42, "hidden_size": 3584, "intermediate_size": 14336, "head_dim": 256,
    "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 256000, "max_position_embeddings": 8192,
    "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"] * 21,
}  # fmt: skip
SMOLLM2_135M: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "head_dim": 64,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}  # fmt: skip
MIXTRAL_8X7B: dict[str, Any] = {
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768,
    "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": False, "sliding_window": None,
}  # fmt: skip
QWEN3_30B_A3B: dict[str, Any] = {
    "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "intermediate_size": 6144, "head_dim": 128,
    "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 151936,
    "max_position_embeddings": 40960, "tie_word_embeddings": False,
}  # fmt: skip
