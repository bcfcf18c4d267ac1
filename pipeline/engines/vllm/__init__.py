"""vLLM within the worker's process."""
