"""What we use of vLLM, held against the Python sources of named wheels, so that a new vLLM is judged before anybody runs it."""
