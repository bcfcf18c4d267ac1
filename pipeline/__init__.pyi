from pipeline.graders import grade as grade
from pipeline.python.label import label as label
from pipeline.python.label import open_run as open_run
from pipeline.python.run import Run as Run

__version__: str
__all__ = ["Run", "grade", "label", "open_run"]
