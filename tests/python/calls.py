"""Rows and settings of calls."""

from typing import Any

ROWS: list[dict[str, Any]] = [
    {"id": f"{n}-{kind}", "problem": f"What is {n} + {n} + 1?", "answer": str(2 * n + 1),
     "steps": [f"{n} + {n} = {2 * n}.", f"{2 * n} + 1 = {last}.", f"The answer is {last}."]}
    for n in range(3) for kind, last in (("right", 2 * n + 1), ("wrong", 2 * n + 3))
]  # fmt: skip
INPUT: list[dict[str, Any]] = [*ROWS, {"id": "bad", "problem": "No answer?"}]
QUICK: dict[str, Any] = {
    "policy": "lab", "estimator": "fixed", "progress": False, "sampling": {"rollouts": 8}, "run.report": False,
}  # fmt: skip
