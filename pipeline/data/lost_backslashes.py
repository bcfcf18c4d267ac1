r"""LaTeX whose backslash JSON took: in JSON, `"\frac"` is a form feed and `rac`, `"\theta"` a tab and `heta`.

A form feed or backspace before letters is always such a loss. A tab or carriage return is one before letters that only end a
command (`heta`, `ight`). Where these are also a word (`an`, `angle`), what stands around decides: a formula, an answer or a
brace, but not an indented line or a table. A line end is one in an answer, and in a formula that no writer would break there.

Not covered: commands that are not listed, and escapes that JSON refuses (`"\alpha"`). The time is linear in the text's length.
"""

import re
from typing import Any, TypeVar, cast

from pipeline.data.formulas import formulas

_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_NAMES = {"\b": "backspace", "\f": "form feed", "\r": "carriage return", "\t": "tab"}
# The rest of each command. `?`: it is also a word, or in a formula a variable.
_COMMANDS = {
    "\b": "ackepsilon ackprime acksim ackslash ar arwedge box because ecause egin egingroup eta eth etween f fseries ig igcap "
    "igcirc igcup igg iggl iggm iggr igl igm igoplus igotimes igr igskip igsqcup igstar igtriangledown igtriangleup igvee "
    "igwedge inom lacklozenge lacksquare lacktriangle m matrix mod oldmath oldsymbol oplus ot otimes owtie ox oxdot oxed "
    "oxminus oxplus oxtimes ra race rack reve uildrel ullet umpeq cancel",
    "\f": "allingdotseq box bseries gure lat lushleft ontsize ootnote ootnotesize orall rac ramebox rown",
    "\n": "abla atural cong e? earrow eg? eq ewline exists geq i? leftarrow leftrightarrow leq less mid odot onumber ot? otag "
    "otin parallel prec rightarrow sim subseteq succ supseteq u? warrow Leftarrow Rightarrow vdash",
    "\r": "angle? brace? brack? ceil? ef? floor? group? ho ight ightarrow ightarrowtail ightharpoonup ightleftarrows "
    "ightleftharpoons ightsquigarrow isingdotseq m? moustache? oot? otatebox times? ule? vert? Vert?",
    "\t": "ag? an? anh au? binom? ext? extbf extcolor extit extnormal extrm extsc extsf extstyle exttt frac? herefore heta "
    "hickapprox hicksim hinspace ilde imes o? op? riangle riangledown riangleleft rianglelefteq riangleq riangleright "
    "rianglerighteq woheadrightarrow",
}
_KNOWN = {sign: {word.rstrip("?"): word.endswith("?") for word in words.split()} for sign, words in _COMMANDS.items()}
"""Whether the rest of a command is also a word, by the sign before it."""
_LOSS = re.compile(r"([\b\f\n\r\t])([A-Za-z]+)")
_GOES_ON = re.compile(r"\s?(?:[\\\d({^_-]|[A-Za-z]\b)")
"""What follows a command, rather than a word."""
_BEFORE, _BEFORE_LINE = "$({[^_=", "$({[^_ "
_PLACE = "\x01"
_SHOWN = 20
T = TypeVar("T")


def mended(text: str, *, answer: bool = False) -> str:
    r"""The text with the backslashes that it has certainly lost. `answer`: it is a bare answer, not prose or code."""
    once = _read(text, answer)[0]
    return once if once == text else _read(once, answer)[0]  # a mended `\begin` opens a formula


def all_mended(value: T, *, answer: bool = False) -> T:
    """A text, or the texts of a list, mended. Other values are unchanged."""
    given: Any = value
    if isinstance(given, str):
        return cast(T, mended(given, answer=answer))
    if not isinstance(given, list | tuple):
        return value
    found = [mended(each, answer=answer) if isinstance(each, str) else each for each in given]
    return value if found == [*given] else cast(T, found)


def loss(value: object, field: str, *, answer: bool = False) -> str:
    """What a mended text, or list of texts, of the `field` of a row has still lost, and how to write it. Empty if nothing."""
    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str) and (found := _read(text, answer)[1]):
            what = f"Character {found.start()} of the {field}, counted from 0, is a {_NAMES[found[1]]} before letters"
            return f"{what}; write \\\\{_LETTERS[found[1]]}{found[2][:_SHOWN]} in JSON."
    return ""


def _read(text: str, answer: bool) -> tuple[str, re.Match[str] | None]:
    """The mended text, and the first loss that is not mended."""
    losses = [each for each in _LOSS.finditer(text) if each[1] != "\n" or each[2] in _KNOWN["\n"]]
    if not losses:
        return text, None
    # A formula may begin or end at the loss, where white space would not let it.
    shown = list(text)
    for each in losses:
        shown[each.start()] = _PLACE
    spans = iter(formulas("".join(shown)))
    start, end = next(spans, (-1, -1))
    parts: list[str] = []
    at, lost = 0, None
    bare = answer and not {*"\n\"'"} & {*"".join(shown).strip()}
    for each in losses:
        while -1 < end <= each.start():
            start, end = next(spans, (-1, -1))
        formula = text[start : start + 2] if start < each.start() < end and text[start] in "$\\" else ""
        if _is_certain(text, each, formula, answer=bare):
            parts += (text[at : each.start()], "\\", _LETTERS[each[1]])
            at = each.start() + 1
        elif each[1] in "\b\f" or (each[1] in "\t\r" and (bare or (len(each[2]) > 1 and _is_inline(formula)))):
            lost = lost or each
    return "".join((*parts, text[at:])), lost


def _is_certain(text: str, each: re.Match[str], formula: str, *, answer: bool) -> bool:
    """Whether a loss can be mended. `formula`: how the formula begins in which it is."""
    sign, rest = each.groups()
    also_word = _KNOWN[sign].get(rest)
    if also_word is None or answer:
        return also_word is not None
    before, after = text[each.start() - 1 : each.start()], text[each.end() : each.end() + 1]
    if sign == "\n" and before + after != "{}":
        return formula != "" and (not also_word or (_is_inline(formula) and before in _BEFORE_LINE))
    if not also_word or formula or after == "{" or (before and before in _BEFORE):
        return True
    return before == " " and _GOES_ON.match(text, each.end()) is not None


def _is_inline(formula: str) -> bool:
    return formula[:1] == "$" != formula[1:] or formula == r"\("
