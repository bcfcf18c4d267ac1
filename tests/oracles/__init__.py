"""`policy=lab`, `scorer=lab` and `judge=lab`: oracles that a test can slow down, break and turn. See `lab`.

They come through the extension point for plug-ins: `site` is a folder with a distribution that offers them.
"""

import os
import sys
from pathlib import Path

SITE = Path(__file__).parent / "site"


def install() -> None:
    """Make the distribution visible, to this process and to its children."""
    if str(SITE) not in sys.path:
        sys.path.append(str(SITE))
        known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*known, str(SITE)]))
