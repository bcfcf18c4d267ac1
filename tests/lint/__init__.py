"""What `make lint` checks beside ruff, mypy and the import rules: names, words, documents, maps, pages of settings, size."""
