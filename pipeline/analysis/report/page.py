"""A page as one HTML file: nothing is loaded from anywhere, and no script but its own one can run in it.

Texts are escaped by the template. Covered by the policy in its head: scripts (by their hash), and every request.
"""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.analysis.report.parts import Page

_WEB = Path(__file__).parent / "web"
_TEMPLATE = "page.html.jinja"
GENERATOR = '<meta name="generator" content="stepvalue'
"""In the head of every page: what tells one from other files."""


def html(page: Page) -> bytes:
    """The file."""
    templates = Environment(
        loader=FileSystemLoader(_WEB), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    inset = page.inset
    script = "\n".join([_part("page.js"), *([inset.js] if inset else [])])
    style = "\n".join([_part("theme.css"), *([inset.css] if inset else [])])
    text = templates.get_template(_TEMPLATE).render(
        page=page,
        # What follows is trusted, see `parts`.
        script=Markup(script),
        style=Markup(style),
        svgs={figure: Markup(figure.svg) for section in page.sections for figure in section.figures},
        inset_html=Markup(inset.html if inset else ""),
        inset_data=Markup(inset.data if inset else ""),
        policy=_policy(script),
    )
    return text.encode("utf-8", "replace")


def _part(name: str) -> str:
    return (_WEB / name).read_text("utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{what} {where}" for what, where in allowed.items())
