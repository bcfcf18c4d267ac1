r"""LaTeX whose backslash JSON took: in JSON, `"\frac"` is a form feed and `rac`, `"\theta"` a tab and `heta`.

A form feed or backspace before letters is always such a loss. A tab or carriage return is one before letters that only end a
command (`heta`, `ight`). Where these are also a word (`an`, `angle`), what stands around decides: a formula, an answer or a
brace, but not an indented line or a table. A line end is one in an answer, and in a formula that no writer would break there.

Not covered: commands that are not listed, and escapes that JSON refuses (`"\alpha"`). The time is linear in the text's length.
"""

import re
from typing import Any, TypeVar

from pipeline.core.records import RejectReason
from pipeline.data.formulas import formulas
from pipeline.data.jsonl import UnusableRowError

_NAMES = {"\b": "backspace", "\f": "form feed", "\n": "new line", "\r": "return", "\t": "tab"}
"""Their first letters are those of the escapes."""
# The rest of each command. `?`: it is also a word, or in a formula a variable.
_COMMANDS = {
    "\b": "ackslash ar ecause egin eta eth f ig igcap igcup igg iggl iggr igl igoplus igotimes igr igskip igstar igvee igwedge "
    "inom lacksquare m matrix mod oldmath oldsymbol ot ox oxed ra race rack reve uildrel ullet cancel",
    "\f": "box lat ootnote ootnotesize orall rac ramebox rown",
    "\n": "abla cong e? earrow eg? eq ewline exists geq leftarrow leq mid odot olimits onumber ot? otag otin parallel prec "
    "rightarrow sim subseteq succ supseteq u? warrow",
    "\r": "angle? brace? brack? ceil? ef? floor? group? ho ight ightarrow ightharpoonup ightleftharpoons isingdotseq m? oot? "
    "otatebox times? ule? vert? Vert?",
    "\t": "ag? an? anh au? binom? ext? extbf extcolor extit extnormal extrm extsc extsf extstyle exttt frac? herefore heta "
    "hinspace ilde imes o? op? riangle riangledown riangleleft riangleq riangleright woheadrightarrow",
}
_KNOWN = {sign: {word.rstrip("?"): word.endswith("?") for word in words.split()} for sign, words in _COMMANDS.items()}
"""Whether the rest of a command is also a word, by the sign before it."""
_LOSS = re.compile(r"([\b\f\n\r\t])([A-Za-z]+)")
_GOES_ON = re.compile(r"\s?(?:[\\\d({^_-]|[A-Za-z]\b)")
"""What follows a command, rather than a word."""
_SHOWN = 20
T = TypeVar("T")


def mended(value: T, field: str = "", *, answer: bool = False) -> T:
    """A text, or the texts of a list, with the backslashes that were certainly lost. `answer`: the text is a bare answer.

    Raises UnusableRowError where a text of a `field` has certainly lost one that cannot be put back.
    """
    given: Any = value
    if isinstance(given, list | tuple):
        made: Any = [mended(each, field, answer=answer) if isinstance(each, str) else each for each in given]
        return value if made == [*given] else made
    if not isinstance(given, str):
        return value
    text, lost = _read(given, answer)
    if text != given:
        text, lost = _read(text, answer)  # a mended `\\begin` opens a formula
    if field and lost:
        what = f"Character {lost.start()} of the {field}, counted from 0, is a {_NAMES[lost[1]]} before letters"
        remedy = f"write \\\\{_NAMES[lost[1]][0]}{lost[2][:_SHOWN]} in JSON, or a blank where no LaTeX is meant."
        raise UnusableRowError(RejectReason.BAD_TEXT, f"{what}; {remedy}")
    return text  # type: ignore[return-value]


def _read(text: str, answer: bool) -> tuple[str, re.Match[str] | None]:
    """The mended text, and the first loss that is not mended."""
    losses = [each for each in _LOSS.finditer(text) if each[1] != "\n" or each[2] in _KNOWN["\n"]]
    if not losses:
        return text, None
    # A formula may begin or end at the loss, where white space would not let it.
    shown = list(text)
    for each in losses:
        shown[each.start()] = "\x01"
    plain = "".join(shown)
    spans = iter([span for span in formulas(plain) if plain[span[0]] in "$\\"])
    start, end = next(spans, (-1, -1))
    bare = answer and not {*"\n\"'"} & {*plain.strip()}
    parts: list[str] = []
    at, lost = 0, None
    for each in losses:
        while -1 < end <= each.start():
            start, end = next(spans, (-1, -1))
        formula = text[start : start + 2] if start < each.start() < end else ""
        inline = formula[:1] == "$" != formula[1:] or formula == r"\("
        if (bare and each[2] in _KNOWN[each[1]]) or _is_certain(text, each, formula != "", inline):
            parts += (text[at : each.start()], "\\", _NAMES[each[1]][0])
            at = each.start() + 1
        elif each[1] in "\b\f" or (each[1] != "\n" and (bare or (inline and len(each[2]) > 1))):
            lost = lost or each
    return "".join((*parts, text[at:])), lost


def _is_certain(text: str, each: re.Match[str], formula: bool, inline: bool) -> bool:
    also_word = _KNOWN[each[1]].get(each[2])
    before, after = text[max(0, each.start() - 1) : each.start()] or "\0", text[each.end() : each.end() + 1]
    if also_word is None or before + after == "{}":
        return also_word is not None
    if each[1] == "\n":
        return formula and (not also_word or (inline and before not in "+-=<>*/,;:&|"))
    if not also_word or formula or after == "{" or before in "$({[^_=":
        return True
    return before == " " and _GOES_ON.match(text, each.end()) is not None
