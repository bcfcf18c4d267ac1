from pipeline.graders import grade as grade
from pipeline.python.label import label as label
from pipeline.python.label import open_run as open_run
from pipeline.python.run import Run as Run
from pipeline.python.search import open_search as open_search
from pipeline.python.search import search as search
from pipeline.python.search import solve as solve
from pipeline.python.search_run import SearchRun as SearchRun

__version__: str
__all__ = ["Run", "SearchRun", "grade", "label", "open_run", "open_search", "search", "solve"]
