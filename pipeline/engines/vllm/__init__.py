"""The policies that vLLM serves in the process of the worker."""
