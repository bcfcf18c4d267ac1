"""Bare vLLM: `LLM.generate` with the prompts of JOB.json, once for every line of standard input, and nothing else.

Imports nothing of the pipeline. Says `READY` when the model is loaded, and after each time `DONE TOKENS SECONDS`.
"""

import json
import os
import sys
import time


def main() -> None:
    with open(sys.argv[1]) as file:
        job = json.load(file)
    os.environ.update(job["environment"])
    from vllm import LLM, SamplingParams

    llm = LLM(**job["engine"])
    prompts = [{"prompt_token_ids": ids} for ids in job["prompts"]]
    sampling = SamplingParams(**job["sampling"])
    print("READY", flush=True)
    for _ in sys.stdin:
        llm.reset_prefix_cache()
        began = time.monotonic()
        outputs = llm.generate(prompts, sampling, use_tqdm=False)
        seconds = time.monotonic() - began
        print("DONE", sum(len(output.outputs[0].token_ids) for output in outputs), seconds, flush=True)


if __name__ == "__main__":
    main()
