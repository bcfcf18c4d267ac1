"""An engine for tests of starts on GPUs."""
