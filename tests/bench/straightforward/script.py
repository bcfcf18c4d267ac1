"""Step values with Ray Data, vLLM and Math-Verify, and nothing else: chains in, one Parquet row per prefix out.

    python tests/bench/straightforward/script.py JOB.json

Imports nothing of the pipeline. Every batch of prefixes is one `LLM.generate` call with n rollouts of each, and rollouts are
graded when the batch is done; Ray Data streams batches, so that one is graded while the next is generated.
"""

import json
import os
import re
import sys
import time
from typing import Any

import ray
from math_verify import parse, verify

Row = dict[str, Any]


class Policy:
    def __init__(self, job: Row) -> None:
        os.environ.update(job["environment"])
        from vllm import LLM, SamplingParams

        self.llm = LLM(**job["engine"])
        self.params = SamplingParams(**job["sampling"])
        print(f"LOADED {time.time()}", flush=True)

    def __call__(self, batch: Row) -> Row:
        outputs = self.llm.generate(list(batch["prompt"]), self.params, use_tqdm=False)
        batch["texts"] = [[sample.text for sample in output.outputs] for output in outputs]
        batch["tokens"] = [sum(len(sample.token_ids) for sample in output.outputs) for output in outputs]
        return batch


def prefixes(chain: Row) -> list[Row]:
    """The bare problem and every step but the last, behind which nothing is left to say."""
    lines = [chain["problem"], *chain["steps"]]
    return [
        {"id": chain["id"], "step": step, "answer": chain["answer"], "prompt": "\n".join(lines[: step + 1]) + "\n"}
        for step in range(len(chain["steps"]))
    ]


def graded(row: Row, answer_pattern: str) -> Row:
    gold = parse(row["answer"])
    right = 0
    for text in row["texts"]:
        stated = re.findall(answer_pattern, text)
        right += bool(stated) and verify(gold, parse(stated[-1]))
    return {
        "id": row["id"],
        "step": row["step"],
        "correct": right,
        "rollouts": len(row["texts"]),
        "value": right / len(row["texts"]),
        "tokens": row["tokens"],
    }


def main() -> None:
    with open(sys.argv[1]) as file:
        job = json.load(file)
    (
        ray.data.read_json(job["chains"])
        .flat_map(prefixes)
        .map_batches(
            Policy,
            fn_constructor_args=(job,),
            batch_size=job["batch_size"],
            compute=ray.data.ActorPoolStrategy(size=1),
            num_cpus=job["engine_cpus"],
        )
        .map(graded, fn_args=(job["answer_pattern"],))
        .write_parquet(job["values"])
    )


if __name__ == "__main__":
    main()
