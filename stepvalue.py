"""The import name that is the name of the distribution: `import stepvalue` gives what `import pipeline` gives."""

from pipeline import *  # noqa: F403
from pipeline import __all__ as __all__
from pipeline import __version__ as __version__
