"""The formats: how a row of each looks, and what its trainer would misread."""
