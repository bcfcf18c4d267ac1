"""stepvalue: Monte Carlo step values for process reward models.

```python
from pipeline import label

run = label("problems.jsonl", policy="Qwen/Qwen3-8B", run_dir="out")
run.labels()
```
"""

from typing import Any

__version__ = "0.1.0"
_WHERE = {
    **dict.fromkeys(
        ("BudgetSpent", "InputError", "PolicyError", "RunConflict", "StepvalueError", "StoreError", "UsageError"),
        "pipeline.core.errors",
    ),
    "Run": "pipeline.python.run",
    "SearchRun": "pipeline.python.search_run",
    "grade": "pipeline.graders",
    "label": "pipeline.python.label",
    "open_run": "pipeline.python.label",
    "open_search": "pipeline.python.search",
    "search": "pipeline.python.search",
    "solve": "pipeline.python.search",
}


__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    # Imported on first use: the workers and the processes that grade import this package too.
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
