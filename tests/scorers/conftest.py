"""Fixtures of scorers."""

from tests.engines.conftest import quick_openai as quick_openai
