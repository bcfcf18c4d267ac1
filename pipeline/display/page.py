"""A page as one HTML file: its parts, its charts, and the file. The page loads nothing, and only its own script can run in it.

The template escapes all texts; only charts and the parts of an `Inset` are trusted as markup. The content security policy in
the head allows the page's script by its hash, and forbids every request.

A chart is SVG in the colours of the page. Vega draws it when the page is written, without a browser or a network, in a process
of its own. Where that fails, a sentence says so.
"""

import base64
import hashlib
import re
import shlex
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from pipeline import __version__
from pipeline.display.document import Chart, Page
from pipeline.display.drawing import cleaned, drawn
from pipeline.display.embedded import part

_PACKAGE = "pipeline.display"
_TEMPLATE = "web/page.html.jinja"
_NAMESPACES = re.compile(r' xmlns(:xlink)?="[^"]*"')
_SIZE = re.compile(r'^<svg [^>]*viewBox="([^"]*)"[^>]*>')
_CODE = re.compile("`([^`]+)`")
_TAG = re.compile("<[^>]*>")
_LINK = re.compile(r'xlink:href="[^"]*/([^"/]*)"')
"""The link of a mark. Vega puts an address of its own before the query."""
_LONG_FRACTION = re.compile(r"(\d\.\d{2})\d+")


def format_time(seconds: float) -> str:
    """A point in time, given in seconds since 1970, as date and minute in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def foot(command: str, given: Mapping[str, object]) -> tuple[str, ...]:
    """How a page is made: the version, the time, and the command with the settings that are not None."""
    words = (f"{key}={value}" for key, value in given.items() if value is not None)
    made = shlex.join(["python", "-m", "pipeline", command, *words])
    return (f"stepvalue {__version__}, {format_time(time.time())} UTC", made)


def html(page: Page) -> bytes:
    """The page as the content of an HTML file."""
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters["code"] = _code
    inset = page.inset
    script = "\n".join([part(_PACKAGE, "web/page.js"), *([inset.js] if inset else [])])
    style = "\n".join([part(_PACKAGE, "web/theme.css"), *([inset.css] if inset else [])])
    svgs = iter(_drawn([chart for section in page.sections for chart in section.charts], inset.anchor if inset else ""))
    text = templates.from_string(part(_PACKAGE, _TEMPLATE)).render(
        page=page,
        # The following parts are trusted as markup, see the module.
        script=Markup(script),
        style=Markup(style),
        next_svg=svgs.__next__,
        inset_html=Markup(inset.html if inset else ""),
        inset_data=Markup(inset.data if inset else ""),
        policy=_policy(script),
    )
    return text.encode("utf-8", "replace")


def _drawn(charts: list[Chart], anchor: str) -> list[Markup]:
    """The SVG of each chart; empty where it could not be drawn. `anchor`: of the list that answers queries, if there is one. A
    mark is no stop of the Tab key: the filters of the list take the same queries."""
    if not charts:
        return []
    # Imported here because a page without charts need not load the chart library.
    from pipeline.display.charts import PLACEHOLDERS, vega_lite

    def styled(tag: re.Match[str]) -> str:
        """A tag of a chart in the colours of the page, without the names that the page gives it already."""
        text = _NAMESPACES.sub("", tag[0])
        for name, placeholder in PLACEHOLDERS.items():
            text = text.replace(placeholder, f"var(--{name})")
        text = _LINK.sub(rf'href="#{anchor}?\1" tabindex="-1"', text)
        return _LONG_FRACTION.sub(r"\1", _SIZE.sub(r'<svg viewBox="\1" aria-hidden="true" focusable="false">', text))

    made = [cleaned(vega_lite(chart, pressed=bool(anchor))) for chart in charts]
    return [Markup(_TAG.sub(styled, svg)) for svg in drawn(made)]


def _code(text: str) -> Markup:
    """A text whose parts between backticks are code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


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
