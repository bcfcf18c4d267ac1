"""What rollouts of a real policy came to, kept without its texts, and runs that are rebuilt from them.

`gsm8k.jsonl` holds the rollouts of Qwen2.5-Coder-0.5B-Instruct (temperature 0.7, 320 tokens at most) from every prefix of the
100 GSM8K chains of a sample of ProcessBench. The chains themselves are not part of it.
"""
