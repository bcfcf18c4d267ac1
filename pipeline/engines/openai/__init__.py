"""Servers that speak the OpenAI completions API."""
