from pipeline.core.errors import (
    BudgetSpent,
    InputError,
    PolicyError,
    RunConflict,
    StepvalueError,
    StoreError,
    UsageError,
)
from pipeline.graders import grade
from pipeline.python.label import label, open_run
from pipeline.python.run import Run
from pipeline.python.search import open_search, search, solve
from pipeline.python.search_run import SearchRun

__version__: str
__all__ = ["Run", "SearchRun", "grade", "label", "open_run", "open_search", "search", "solve"]
__all__ += ["BudgetSpent", "InputError", "PolicyError", "RunConflict", "StepvalueError", "StoreError", "UsageError"]
