r"""The answer of a text that marks none: its last number, or the result that its last line states. Pure, linear time.

The result is the last formula in dollars or LaTeX brackets if only a few words follow it. Otherwise it is, on the last line,
the choice ("option B"), else the final bold words, else the text after the last "is" or "=", else the only number. The last two
do not count in a line that negates or compares ("more than 3").
"""

import re
from operator import itemgetter

from pipeline.graders.math.choices import ends_with_choices, parts_at_end
from pipeline.graders.math.limits import MAX_CHARS
from pipeline.graders.math.multipliers import with_multiplier
from pipeline.graders.math.refusals import refuses, undetermined
from pipeline.graders.math.result_sentences import result_of_sentence

TAIL = 4_000
MAX_SCAN = 100_000
# A formula is the result if no more than a unit or a few words follow it.
MAX_WORDS_AFTER = 12
MAX_LINE = 400
MAX_WORDS_BESIDE_MATHEMATICS = 4
MAX_BARE_WORDS = 2
MAX_BARE = 64

_NUMBER = re.compile(
    r"\\[dt]?frac\{-?\d{1,400}\}\{-?\d{1,400}\}|(?:(?<![\w)\]}.])-)?(?:\d[\d,]{0,400}(?:\.\d{1,400})?|\.\d{1,400})(?:/\d{1,400})?%?"
)
_BRACKETS = {"\\]": "\\[", "\\)": "\\("}
_DOLLARS = re.compile(r"(?<!\\)\$\$?")
_BOLD_END = re.compile(r"\*\*([^*\n]{1,200})\*\*[\s.!]*$")
_CHOICE_END = re.compile(
    r"\b(?:[Oo]ption|[Cc]hoice)\s{0,4}\(?([A-J])\)? is (?:the )?correct|\(?\b([A-J])\)? is the (?:correct|right)\b"
    r"|(?:\b[Oo]ption|\b[Cc]hoice|\bselect|\bchoose|\bpick)\s{0,4}\(?([A-J])\)?[\s.!]*$|\(([A-J])\)[\s.!]*$"
)
_SAYS = re.compile(
    r"\b(?:is|are|was|were|should be|must be|will be|equals?|has|have|gets?|gives?|becomes?|obtain|find|lies in|belongs to"
    r"|option|choice|(?<=t)'s"
    r"|therefore|thus|so|hence)\b[\s,:]*|[=:≈](?!\d)\s*",
    re.IGNORECASE,
)
_MATHEMATICS = re.compile(r"[\d\\^+*/=<>|∞πθ√°%]|\b[b-zB-HJ-Z]\b")
_NO_ANSWER = re.compile(
    "|".join(
        (
            r"\. |^(?:[,;:&<>)\]]|\.(?!\d))|[-+*/^=,&(\[{<>]$",  # the rest of a sentence, or a text that was cut off
            r"[,;] ?(?:and|so|or|but)\b|\d[^\d\\]*[A-Za-z]{3,}[^\\]*\d",  # a second statement: 10 apples in 2 baskets
            r"(?<![\\A-Za-z_])[A-Za-z_]{3,}\(|[A-Za-z]_[A-Za-z]{2,}",  # code
            r"[^\W\d_a-zA-Zπθ²³½¼¾]",  # another script
        )
    )
)
# "It cannot be 5" contains a number but states no answer.
_DENIAL = re.compile(r"(?:\b(?:not|cannot|never|neither|nor)\b|n't\b)[^,;:.]*$", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:than|at least|at most|between|instead|previously|case|part|step|problem|question|exercise)\b|≠|\\ne"
    r"|=[^=\n]{1,40}(?:\band\b|\bor\b|,)\s{0,3}[A-Za-z]\w?\s{0,3}=",  # two values: the last one alone is not the answer
    re.IGNORECASE,
)
# A condition, a question or a plan states nothing.
_CONDITION = re.compile(
    r"\s{0,4}(?:[Ii]f|[Ss]uppose|[Aa]ssume|[Ww]hether)\b(?![^.]*\b(?:then|we get|we find|we obtain)\b)"
    r"|.{0,400}\b(?:must|have to|need to) check\b"
)
# Right before a formula: "not $5$", "at least $5$", "$x=5$ or $".
_NOT_THIS = re.compile(
    r"(?:\b(?:not(?: equal(?: to)?)?|never|than|at least|at most|twice|divisible by|reject|discard|exclude|eliminate)\b|n't\b"
    r"|(?:\$|\\[)\]]) ?(?:or|and)) ?:? ?(?:\*\*)?(?:\$|\\[(\[])*[ \n]?$",
    re.IGNORECASE,
)
# Right after it: "$x=5$ is not a solution".
_DENIED_AFTER = re.compile(
    r"[\s$*]{0,4}(?:(?:is|are) (?:not\b|wrong|incorrect|impossible|no\b|excluded|rejected)|(?:do|does|did|is|are)n't\b"
    r"|(?:does|do|did) not\b|cannot\b|can't\b|fails?\b|leads? to a contradiction|(?:is|gives?) a contradiction)",
    re.IGNORECASE,
)
_STATES = re.compile(r"\b(?:then|so|thus|hence|therefore|we (?:get|find|obtain|have))\b", re.IGNORECASE)
_CLOSING = " $*\n"
_CALCULATOR = re.compile(r"<<[^<>\n]{1,200}>>")
_WORD = re.compile(r"[A-Za-z]{2,}")
_LONG_WORD = re.compile(r"[A-Za-z]{3,}")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_DIGIT = re.compile(r"\d")


def last_number(text: str) -> str | None:
    """The last number in a text, whatever its role."""
    for part in (text[-TAIL:], text[-MAX_SCAN:]):
        found = _NUMBER.findall(part)
        if found:
            return str(found[-1]).rstrip(",.") or None
    return None


def closing_statement(text: str) -> str | None:
    """The result that the end of a text states, or None if it states no formula, choice, bold words, number or short phrase."""
    tail = text[-TAIL:].rstrip()
    if ends_with_choices(tail):
        return None
    if refuses(tail):
        return undetermined(tail)
    parts = parts_at_end(tail)
    if parts is not None:
        return parts
    formula, end = _last_formula(tail)
    after = tail[end:]
    short = after.count(" ") <= MAX_WORDS_AFTER and "\n\n" not in after
    if formula is not None and short and not _DIGIT.search(after):
        start = tail.rfind(formula, 0, end)
        denied = _is_denied(tail[:start][-MAX_LINE:], tail[start + len(formula) :])
        return None if denied else with_multiplier(formula, after)
    line = _CALCULATOR.sub("", tail[tail.rfind("\n") + 1 :])
    if line[-MAX_LINE - 1 : 1 - MAX_LINE].isdigit() and len(line) > MAX_LINE:
        # The cut would leave a part of a number.
        return None
    line = line[-MAX_LINE:]
    choice = _CHOICE_END.search(line)
    if choice:
        return next(letter for letter in choice.groups() if letter)
    bold = _BOLD_END.search(line)
    if bold:
        return bold.group(1)
    if line.endswith("?") or _CONDITION.match(line):
        return None
    counted = result_of_sentence(line)
    if counted:
        return counted
    if _DENIAL.search(line.rstrip(". ")):
        return None
    return _stated_number(line) or _lone_number(line)


def _is_denied(before: str, after: str) -> bool:
    """Whether the words next to a formula deny it, bound it, ask for it, or give it as one of two."""
    line = before[before.rfind("\n") + 1 :]
    question = after.rstrip(_CLOSING).endswith("?")
    asks = question or (_CONDITION.match(line) is not None and not _STATES.search(line))
    return asks or _NOT_THIS.search(line) is not None or _DENIED_AFTER.match(after) is not None


def _lone_number(line: str) -> str | None:
    """The number of a line that contains exactly one and does not negate or compare it."""
    matches = [(match.group().rstrip(",."), match.end()) for match in _NUMBER.finditer(line)]
    numbers = {number for number, _ in matches} - {""}
    if len(numbers) != 1 or _HEDGE.search(line):
        return None
    number, end = next(match for match in matches if match[0])
    return with_multiplier(number, line[end:])


def _stated_number(line: str) -> str | None:
    """The text after the last "is", "=" or similar, or the whole line if it has none. None if the text is too long."""
    verbs = list(_SAYS.finditer(line))
    said = (line[verbs[-1].end() :] if verbs else line).strip(" .!*$")
    if not _is_whole(said) or _HEDGE.search(line):
        return None
    if _MATHEMATICS.search(said):
        return said if len(_WORD.findall(said)) <= (MAX_WORDS_BESIDE_MATHEMATICS if verbs else MAX_BARE_WORDS) else None
    short = len(said.split()) <= MAX_BARE_WORDS
    return said if short and (verbs or len(line) <= MAX_BARE) else None


def _is_whole(said: str) -> bool:
    """Whether a phrase can be an answer: it is no code, has no second statement and was not cut off."""
    # An interval may open with one kind of bracket and close with another.
    opened, closed = (sum(map(said.count, marks)) for marks in ("([{", ")]}"))
    return bool(said) and opened == closed and not _NO_ANSWER.search(said)


def _last_formula(tail: str) -> tuple[str | None, int]:
    """Content and end position of the last closed formula, or (None, 0)."""
    ends = {closer: tail.rfind(closer) for closer in _BRACKETS}
    closer, at = max(ends.items(), key=itemgetter(1))
    dollars = [match.start() for match in _DOLLARS.finditer(tail, tail.rfind("\n\n") + 1)]
    if dollars and dollars[-1] > at:
        # An odd number of dollar signs means money, or a formula that was never closed.
        if len(dollars) % 2:
            return None, 0
        start, at = dollars[-2], dollars[-1]
        content, end = tail[start:at].strip("$ \n"), at + 2
    elif at > 0:
        start = tail.rfind(_BRACKETS[closer], 0, at)
        content, end = tail[start + 2 : at].strip(), at + 2
        if start < 0:
            return None, 0
    else:
        return None, 0
    # "costs $5 and not $7" contains no formula.
    prose = "\\" not in content and " " in content and _LONG_WORD.search(content)
    if len(content) > MAX_CHARS or prose:
        return None, 0
    return (content, end) if _is_whole(content.rstrip(".,")) and _LETTER_OR_DIGIT.search(content) else (None, 0)
