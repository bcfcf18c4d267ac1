r"""Normalizes the spelling of an answer: Unicode symbols, LaTeX layout and spaces. Pure, linear time.

The result is LaTeX with the same meaning. Equal results mean equal answers. Different results prove nothing.
"""

import re
import unicodedata

from pipeline.graders.math.powers import separate, shorten

_SYMBOLS = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "×": r"\times ", "⋅": r"\cdot ", "·": r"\cdot ",
        "∙": r"\cdot ", "÷": "/", "∕": "/", "⁄": "/", "°": "^\\circ ", "º": "^\\circ ", "π": r"\pi ", "∞": r"\infty ",
        "∅": r"\emptyset ", "ℝ": r"\mathbb{R}", "γ": r"\gamma ", "δ": r"\delta ", "Δ": r"\Delta ", "φ": r"\phi ",
        "ω": r"\omega ", "σ": r"\sigma ", "μ": r"\mu ", "ρ": r"\rho ", "τ": r"\tau ", "′": "'", "≤": r"\le ", "≥": r"\ge ",
        "≠": r"\ne ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∖": r"\setminus ",
        "±": r"\pm ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ", "∠": r"\angle ", "’": "'",
        "，": ",", "：": ":", "。": ".", "％": "%", "⟨": "(", "⟩": ")", "|": "|",
    }
)  # fmt: skip
_SUPERSCRIPT = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁻⁺", "0123456789n-+", strict=True))
_SUBSCRIPT = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_RAISED, _LOWERED = (re.compile(f"[{''.join(marks)}]+") for marks in (_SUPERSCRIPT, _SUBSCRIPT))
_ROOT = re.compile(r"√\s*(?:(\d+|[A-Za-z])|\(([^()]*)\))")
_LAYOUT = re.compile(
    r"\\(?:left|right|bigg?|Bigg?|displaystyle|textstyle|rm|bf|it|limits|nolimits|mathstrut|Large|large|small|tiny|normalsize|rm)(?![A-Za-z])\.?|\\(?:text)?color\{[a-z]*\}|\\(?:phantom|hspace|vspace)\{[^{}]*\}"
)
_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|,\s*\\!|\\,|,\\ )\s*(?=\d{3}(?!\d))")
_SPACING = re.compile(r"\\[!]|(?<!\\)\\(?:[,;: ]|q?quad|enspace|thinspace)|~|\s+")
_DELIMITER = re.compile(r"(?<!\\)\$")
_BLANKS = re.compile(r"  +")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")
_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sf|tt|up)?|mathrm|mathbf|mathit|mathsf|mbox|hbox|operatorname\*?|emph|boldsymbol|bm|underline|framebox|fbox|ovalbox|ensuremath)\s*\{([^{}]*)\}"
)
_CHOOSE = re.compile(r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}")
_STYLED_FRACTION = re.compile(r"\\(?:[dtc]|nice|s)(frac|binom)(?![A-Za-z])")
_SHORT_FRACTION = re.compile(
    r"\\(frac|binom)\s*(?:(\d|[A-Za-z]|\\pi)|\{([^{}]*)\})\s*(?:(\d|[A-Za-z]|\\pi)|\{([^{}]*)\})"
)
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\d|[A-Za-z](?![A-Za-z]))")
_DEGREES = re.compile(r"\s*(?:(?:\^\s*|(?<=\d)\s*)\{?\s*\\circ\s*\}?|\\degrees?(?![A-Za-z])|°)\s*")
# 60^o, as it is typed; a letter o is hardly ever an exponent of a number.
_TYPED_DEGREES = re.compile(r"(?<=\d) ?\^(?:o(?![A-Za-z0-9_^])|\{o\})")
_SYNONYM = {
    "leq": r"\le", "geq": r"\ge", "neq": r"\ne", "lt": "<", "gt": ">", "varnothing": r"\emptyset", "infin": r"\infty",
    "cdotp": r"\cdot", "colon": ":", "langle": "(", "rangle": ")", "to": r"\rightarrow", "land": r"\wedge", "lor": r"\vee",
    "backslash": r"\setminus",
}  # fmt: skip
_SYNONYMS = re.compile(rf"\\({'|'.join(_SYNONYM)})(?![A-Za-z])")
# The blank in "3, 5" stays, because 3,5 may be a decimal.
_LOOSE_SPACE = re.compile(
    r" (?![A-Za-z0-9.])|(?<![A-Za-z0-9,.%}]) |(?<=,) (?!\d{3}(?!\d))(?!(?:(?<=\d, )|(?<=\d , ))\d)"
)
_BARE_SYMBOLS = ("pi", "inf", "sqrt", "x", "X")
_BARE_FUNCTION = re.compile(
    r"(?<![A-Za-z\\])(?:(pi|inf|infty|infinity|oo)(?![A-Za-z])|sqrt ?(?:\(([^()]*)\)|(\d+))|sqrt(?![A-Za-z]))"
)
# In 2/3\sqrt{5} and 1/2x the fraction is meant as a factor.
_COEFFICIENT = re.compile(r"(?<![\w}).^/])(\d+)/(\d+)(?=\\(?:sqrt|pi)|[a-zA-Z](?![A-Za-z])|\()")
_COMMAND_SPACE = re.compile(r"(\\[A-Za-z]+) (?![A-Za-z])")
# 0x10 is a hexadecimal number, and x is a variable where it does not always stand between two numbers.
_TIMES = re.compile(r"(?<=[\d}])(?<!(?<![\w.])0)( ?)[xX]\1(?=\.?\d)")
_VARIABLE_X = re.compile(r"(?<![A-Za-z\\])[xX](?![A-Za-z]| ?=)")
_GROUPED = re.compile(r"(?<=\d)['_](?=\d{3}(?!\d))")
# The ways to write 0.1\overline{6}: 0.1(6), 0.1666..., 0.1\dot{6}.
_CYCLE = re.compile(
    r"(?<![A-Za-z.])(\.\d{0,20}?)(?:\((\d{1,20})\)|(\d{1,12}?)\3{1,20}(?:\.{3}|\\[lc]?dots(?![A-Za-z]))"
    r"|\\dot ?\{?(\d)\}?(?:(\d{0,20})\\dot ?\{?(\d)\}?)?)"
)
# ]2,5[ is what (2,5) is elsewhere.
_INTERVAL = re.compile(r"([\[\]])([^\[\]()]{1,99}[,;][^\[\]()]{1,99})([\[\]])")
_UNION = re.compile(r"(?<=[)\]}]) ?(?:U|union) ?(?=[(\[]|\\\{)")
_ONE_LETTER_UNITS = {"m": "meters", "g": "grams", "s": "seconds", "h": "hours", "L": "liters"}
MAX_TEXT_NESTING = 4


def normal_form(answer: str) -> str:
    """The answer in its normal spelling: ASCII, LaTeX commands for symbols, no layout commands, no unnecessary spaces."""
    if answer.isascii() and answer.isalnum() and not any(name in answer for name in _BARE_SYMBOLS):
        return answer
    text = answer if answer.isascii() else _ascii(answer)
    if "^" in text or "**" in text:
        text = shorten(separate(text))
    if not text.isprintable():
        text = "".join(mark for mark in text if mark.isprintable() or mark.isspace())
    if "\\" in text or "{,}" in text or "{:}" in text:
        text = _latex(text)
    if "pi" in text or "sqrt" in text or "inf" in text or "oo" in text:
        text = _BARE_FUNCTION.sub(_command, text)
        text = text.replace("negative \\infty", "-\\infty").replace("minus \\infty", "-\\infty")
    if "$" in text:
        # A dollar sign that is not escaped delimits a formula.
        text = _DELIMITER.sub("", text).replace("\\$", "$")
    text = text.replace("\\%", "%").replace("\\#", "#").replace("\\_", "_")
    if "^o" in text or "^{o" in text:
        text = _TYPED_DEGREES.sub("^\\\\circ", text)
    text = _DEGREES.sub("^\\\\circ ", text) if "circ" in text or "degree" in text else text
    text = _BLANKS.sub(" ", _SPACING.sub(" ", text)).replace("**", "^").replace("!=", "\\ne ")
    text = _LOOSE_SPACE.sub("", text.strip())
    text = _COMMAND_SPACE.sub(r"\1", text)
    if "/" in text:
        text = _COEFFICIENT.sub(r"\\frac{\1}{\2}", text)
    if "." in text and ("..." in text or "dot" in text or "(" in text):
        text = _CYCLE.sub(r"\1\\overline{\2\3\4\5\6}", text)
    if ("x" in text or "X" in text) and not _VARIABLE_X.search(product := _TIMES.sub(r"\\times", text)):
        text = product
    if "'" in text or "_" in text:
        text = _GROUPED.sub("", text)
    if text[:1] == "]" or text[-1:] == "[" or "\\cup" in text:
        text = _INTERVAL.sub(_turned, text)
    if ")U" in text or "U(" in text or "union" in text:
        text = _UNION.sub(r"\\cup", text)
    if "+/-" in text or text[:2] == "+-":
        text = text.replace("+/-", "\\pm").replace("+-", "\\pm", text[:2] == "+-")
    text = text.strip(" ").rstrip(".,;: ").lstrip("= ")
    while len(text) > 2 and text[0] == "{" and text[-1] == "}" and "{" not in text[1:-1] and "}" not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _ascii(text: str) -> str:
    text = _ROOT.sub(r"\\sqrt{\1\2}", text)
    text = _RAISED.sub(lambda run: "^{" + "".join(map(_SUPERSCRIPT.__getitem__, run.group())) + "}", text)
    text = _LOWERED.sub(lambda run: "_{" + "".join(map(_SUBSCRIPT.__getitem__, run.group())) + "}", text)
    text = text.translate(_SYMBOLS)
    if text.isascii():
        return text
    marks = []
    for mark in text:
        category = "L" if mark.isascii() else unicodedata.category(mark)
        if category == "No" and "⁄" in (plain := unicodedata.normalize("NFKC", mark)):
            marks.append(" " + plain.replace("⁄", "/"))
        # Invisible characters are dropped, so texts that look equal are equal.
        elif category not in ("Cf", "Cc", "Cs", "Co", "Cn"):
            marks.append(mark)
    return unicodedata.normalize("NFKC", "".join(marks)).translate(_SYMBOLS)


def _latex(text: str) -> str:
    if "\\\\" in text and "\\begin" not in text:
        # Backslashes are doubled, as in program output. Rows of a matrix need two, so text with \begin stays.
        text = _DOUBLED.sub(r"\\", text)
    text = _LAYOUT.sub("", text)
    text = _THOUSANDS.sub("", text).replace("{:}", ":").replace("\\!", "")
    for _ in range(MAX_TEXT_NESTING):
        unwrapped = _TEXT.sub(_content, text)
        if unwrapped == text:
            break
        text = unwrapped
    text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    text = _STYLED_FRACTION.sub(r"\\\1", text)
    text = _SHORT_FRACTION.sub(r"\\\1{\2\3}{\4\5}", text)
    text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    return _SYNONYMS.sub(lambda match: _SYNONYM[match.group(1)] + " ", text)


def _command(match: re.Match[str]) -> str:
    if match.group(1):
        return r"\pi " if match.group(1) == "pi" else r"\infty "
    inside = match.group(2) or match.group(3)
    return r"\sqrt" if inside is None else rf"\sqrt{{{inside}}}"


def _content(match: re.Match[str]) -> str:
    # Without the braces a single "m" would be read as a variable, so it becomes the name of its unit.
    inside = match.group(1)
    return f" {_ONE_LETTER_UNITS.get(inside.strip(' ~'), inside)} "


def _turned(match: re.Match[str]) -> str:
    opener, ends, closer = match.groups()
    return f"{'(' if opener == ']' else '['}{ends}{')' if closer == '[' else ']'}"
