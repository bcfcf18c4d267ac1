"""The policy on servers with the OpenAI completions API."""
