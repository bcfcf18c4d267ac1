"""The import name that is the name of the distribution: `import stepvalue` gives what `import pipeline` gives."""

from pipeline import Run, __version__, grade, label, open_run

__all__ = ["Run", "__version__", "grade", "label", "open_run"]
