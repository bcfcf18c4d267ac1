"""The import name that is the name of the distribution: `import stepvalue` gives what `import pipeline` gives."""

from pipeline import Run, SearchRun, __version__, grade, label, open_run, open_search, search, solve

__all__ = ["Run", "SearchRun", "__version__", "grade", "label", "open_run", "open_search", "search", "solve"]
