r"""The answer of a text that marks none: its last number, or the result that its last line states. Pure, linear time.

The result is the last formula in dollars or LaTeX brackets if only a few words follow it. Otherwise it is, on the last line,
the choice ("option B"), else the final bold words, else the text after the last "is" or "=", else the only number. The last two
do not count in a line that negates or compares ("more than 3").
"""

import re
from operator import itemgetter

from pipeline.data.numbers import SCALES
from pipeline.graders.math.choices import ends_with_choices, parts_at_end
from pipeline.graders.math.denials import (
    hedges,
    is_condition,
    is_denied,
    is_intermediate,
    is_no_choice,
    is_no_statement,
    refuses,
    undetermined,
)
from pipeline.graders.math.limits import MAX_CHARS
from pipeline.graders.math.wording import phrase

TAIL, MAX_SCAN = 4_000, 100_000
# A formula is the result if no more than a unit or a few words follow it.
MAX_WORDS_AFTER = 12
MAX_LINE, MAX_BARE = 400, 64
MAX_WORDS_BESIDE_MATHEMATICS, MAX_BARE_WORDS = 4, 2

_NUMBER = re.compile(
    r"\\[dt]?frac\{-?\d{1,400}\}\{-?\d{1,400}\}|(?:(?<![\w)\]}.])-)?(?:\d[\d,]{0,400}(?:\.\d{1,400})?|\.\d{1,400})(?:/\d{1,400})?%?"
)
_BRACKETS = {"\\]": "\\[", "\\)": "\\("}
_DOLLARS = re.compile(r"(?<!\\)\$\$?")
_BOLD_END = re.compile(r"\*\*([^*\n]{1,200})\*\*(?:,? (?:in total|in all|altogether))?[\s.!]*$")
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
# The side before an equals sign: 2x, 3x + 1.
_SIDE = re.compile(r"(?:(?<=\s)|^)(?:[\w.^()]{1,20} ?[-+*/] ?){0,4}[\w.^()]{1,20}$")
_TERM = re.compile(r"\d[A-Za-z]|[A-Za-z)]\^|[A-Za-z] ?[-+*/]|[-+*/] ?[A-Za-z]")
# "not 18 but 19"
NOT_BUT = r"(?:not|neither)\s(?!only|just|merely)[^.\n]{1,40}?,?\sbut(?! also)\s(?:(?:rather|instead|it is) )?"
_NOT_BUT = re.compile(rf"\b{NOT_BUT}(?=[$*]{{0,3}}[-\d\\])")
_CALCULATOR = re.compile(r"<<[^<>\n]{1,200}>>")
# "There are 12 ways to seat them", with one number alone and no word that denies, compares or adds a second statement.
_RESULT = r"\*{0,2}(\$[^$\n]{1,60}\$|\d[\d,]{0,40}(?:[./]\d{1,40})?%?)\*{0,2}"
_COUNT = phrase(
    rf"<sentence_opening>there (?:are|is|exists?)(?: <exactly>)? {_RESULT}(?: [A-Za-z'-]{{1,20}},?){{0,20}}[.!]?",
    re.IGNORECASE,
)
_CHANCE = phrase(
    r"<sentence_opening>the (?:[a-z]{1,20} )?probability(?: of this(?: event)?)? (?:is|equals|is equal to) "
    rf"{_RESULT}(?: that(?: [A-Za-z'-]{{1,20}},?){{0,20}})?[.!]?",
    re.IGNORECASE,
)
_NOT_ALONE = phrase(r"\b<not_alone>\b|n't\b", re.IGNORECASE)
_WORD, _LONG_WORD = re.compile(r"[A-Za-z]{2,}"), re.compile(r"[A-Za-z]{3,}")
_LETTER_OR_DIGIT, _DIGIT = re.compile(r"[^\W_]"), re.compile(r"\d")

EMOJI = r"[\u2600-\u27bf\U0001f300-\U0001faff\u2b50\u2b55\u220e\u25a0\u25a1\u25fb-\u25fe][\ufe0f\u200d]?"
_SIGN = r"\\(?:blacksquare|square|Box|qed(?:symbol|here)?|checkmark)(?![A-Za-z])"
_ORNAMENT = re.compile(
    rf"\s*(?:\$\$?\s?{_SIGN}\s?\$\$?|\\[(\[]\s?{_SIGN}\s?\\[)\]]|(?:(?:\\q?quad|\\hfill|\\[,;: ])\s?)?(?:{_SIGN}|{EMOJI})"
    r"|[:;]-?[)D](?!\w)|<br\s?/?>|\[?\bQ\.?E\.?D\b\.?\]?|(?<=\s)[#|/~-]{1,20})(?=[\s.!$*]*$)"
)
_MAX_ORNAMENTS, _MAX_END = 4, 200
_MAY_END_ORNAMENT = frozenset("edklxyD>:;-#|/~")
# What stands between a value and a remark on it: "18, in total", "18 - that is all", "18 (rounded)".
_APART = re.compile(r"\s*[,;]\s+|\s+(?:[-–—]|=>|→|\.\.\.|…)\s+|—|\s+(?=[(\[])|\s*" + EMOJI + r"\s*")
_MAX_REMARKS = 6
_LATEX_WORDS = re.compile(r"\\(?:text|quad|mbox)\b|\\[,; ]|[{}$*]")
# A remark that may hold a number, one in brackets, and words that are another value or change the one before them.
_REMARK = phrase(r"\(?<remark>\b(?!.*(?:\b(?:is|are)|=) [$\\-]{0,2}\d+$)")
_REMARK_IN_BRACKETS = phrase(r"[(\[](?:<remark>|<short_remark>)\b[^()]{0,200}(?:[)\]]|$)")
_NO_REMARK = phrase(r"(?!an? [a-z]{3})[a-z]\b(?!\.)|<no_remark>|(?:if|when|for)\b.*\b(?:else|otherwise)\b")
_WORDS_ALONE = re.compile(r"(?:[a-z]|I\b|Done\b|That\b)[A-Za-z',.:;!() -]*")
_BEGINS_WITH_WORD = re.compile(r"\W*[A-Za-z]{3}")
# Words after a number that make it another number.
_MULTIPLIER = re.compile(rf"[$* ]{{0,4}}\b({'|'.join(SCALES)})\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"[$* ]{0,4}\b(?:factorial|squared|cubed|times|plus|minus|choose|divided|multiplied|tens|dozens|hundreds|thousands|millions"
    r"|billions|and a|to the power|per ?cent|percentage|halves|thirds|fifths|sixths|sevenths|eighths|ninths|tenths|hundredths"
    r"|thousandths)\b",
    re.IGNORECASE,
)


def without_ornaments(text: str) -> str:
    """A text without the signs that close a proof or cheer at its end: a black square, QED, emoji."""
    tail = text[-_MAX_END:]
    for _ in range(_MAX_ORNAMENTS):
        last = tail.rstrip(" \t\n.!$*)\\]")[-1:]
        ornament = _ORNAMENT.search(tail) if last in _MAY_END_ORNAMENT or not last.isascii() else None
        if ornament is None or not (tail[: ornament.start()].strip() or len(text) > _MAX_END):
            break
        tail = tail[: ornament.start()] + tail[ornament.end() :]
    return text[:-_MAX_END] + tail


def without_remark(said: str) -> str:
    """A value without the words after it: "18, in total", "18 (rounded down from 18.4)". Lists and names stay whole."""
    if said.isdigit():
        return said
    said = without_ornaments(said).rstrip(" –—")
    if _BEGINS_WITH_WORD.match(said) and "=" not in said:
        return said
    for number, apart in enumerate(_APART.finditer(said)):
        value, rest = said[: apart.start()], _LATEX_WORDS.sub(" ", said[apart.end() :]).strip(" .!")
        is_value = _DIGIT.search(value) or "\\" in value or len(value.strip("$*() ")) == 1
        if number < _MAX_REMARKS and is_value and _is_whole(value.strip(" $*")) and _is_remark(rest):
            return value
    return said


def _is_remark(words: str) -> bool:
    if words.startswith(("(", "[")):
        return _REMARK_IN_BRACKETS.match(words) is not None
    if _NO_REMARK.match(words) or len(words) > _MAX_END:
        return False
    return _REMARK.match(words) is not None or (len(words) > 1 and _WORDS_ALONE.fullmatch(words) is not None)


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
    if (parts := parts_at_end(tail)) is not None:
        return parts
    if is_intermediate(tail[tail.rfind("\n") + 1 :][-MAX_LINE:]):
        return None
    formula, start, end = _last_formula(tail)
    after = tail[end:]
    short = after.count(" ") <= MAX_WORDS_AFTER and "\n\n" not in after
    if formula is not None and short and not _DIGIT.search(after):
        denied = is_no_statement(tail[max(0, start - MAX_LINE) : start], after)
        return None if denied else with_multiplier(formula, after)
    line = _NOT_BUT.sub("", _CALCULATOR.sub("", tail[tail.rfind("\n") + 1 :]))
    if line[-MAX_LINE - 1 : 1 - MAX_LINE].isdigit() and len(line) > MAX_LINE:
        # The cut would leave a part of a number.
        return None
    line = line[-MAX_LINE:]
    if choice := _CHOICE_END.search(line):
        at = choice.start(choice.lastindex or 0)
        return None if is_no_choice(line[:at], line[at + 1 :]) else line[at]
    if bold := _BOLD_END.search(line):
        return bold.group(1)
    if is_condition(line):
        return None
    if counted := result_of_sentence(line):
        return counted
    if hedges(line):
        return None
    return _stated_number(line) or _lone_number(line)


def result_of_sentence(line: str) -> str | None:
    """The number or formula of a line whose last sentence states a count or a probability, else None."""
    sentence = line[line.rfind(". ") + 1 :].strip(" *")
    match = _COUNT.fullmatch(sentence) or _CHANCE.fullmatch(sentence)
    if match is None or _NOT_ALONE.search(sentence[: match.start(1)]) or _NOT_ALONE.search(sentence[match.end(1) :]):
        return None
    value = match.group(1).strip("$ ")
    return with_multiplier(value, sentence[match.end(1) :]) if value else None


def _lone_number(line: str) -> str | None:
    """The number of a line that contains exactly one and does not negate or compare it."""
    places = {match.group().rstrip(",."): match.start() for match in reversed(list(_NUMBER.finditer(line)))}
    if len(places) != 1:
        return None
    [(number, at)] = places.items()
    after = line[at + len(number) :]
    return None if is_denied(line[:at], after) else with_multiplier(number, after.lstrip(",."))


def _stated_number(line: str) -> str | None:
    """The text after the last "is", "=" or similar, or the whole line if it has none. None if the text is too long."""
    verbs = list(_SAYS.finditer(line))
    said = without_remark((line[verbs[-1].end() :] if verbs else line).strip(" .!*$")).strip(" .!*$")
    at = line.rfind(said)
    if not _is_whole(said) or is_denied(line[:at], line[at + len(said) :]):
        return None
    side = _SIDE.search(line[:at].rstrip(" =")[-MAX_BARE:]) if verbs and "=" in verbs[-1].group() else None
    if side and _TERM.search(side.group()) and not _WORD.search(side.group()):
        # "2x = 4" may not state 4, so it is compared as a whole.
        return f"{side.group()} = {said}"
    if _MATHEMATICS.search(said):
        return said if len(_WORD.findall(said)) <= (MAX_WORDS_BESIDE_MATHEMATICS if verbs else MAX_BARE_WORDS) else None
    short = len(said.split()) <= MAX_BARE_WORDS
    return said if short and (verbs or len(line) <= MAX_BARE) else None


def _is_whole(said: str) -> bool:
    """Whether a phrase can be an answer: it is no code, has no second statement and was not cut off."""
    # An interval may open with one kind of bracket and close with another.
    opened, closed = (sum(map(said.count, marks)) for marks in ("([{", ")]}"))
    return bool(said) and opened == closed and not _NO_ANSWER.search(said)


def _last_formula(tail: str) -> tuple[str | None, int, int]:
    """Content of the last closed formula, and where it begins and ends with its delimiters. (None, 0, 0) if there is none."""
    nothing = None, 0, 0
    ends = {closer: tail.rfind(closer) for closer in _BRACKETS}
    closer, at = max(ends.items(), key=itemgetter(1))
    dollars = list(_DOLLARS.finditer(tail, tail.rfind("\n\n") + 1))
    if dollars and dollars[-1].start() > at:
        # An odd number of dollar signs means money, or a formula that was never closed.
        if len(dollars) % 2:
            return nothing
        opened, closed = dollars[-2:]
        start, end = opened.start(), closed.end()
        content = tail[opened.end() : closed.start()].strip("$ \n")
    elif at > 0:
        start, end = tail.rfind(_BRACKETS[closer], 0, at), at + 2
        if start < 0:
            return nothing
        content = tail[start + 2 : at].strip()
    else:
        return nothing
    # "costs $5 and not $7" contains no formula.
    prose = "\\" not in content and " " in content and _LONG_WORD.search(content)
    if len(content) > MAX_CHARS or prose:
        return nothing
    return (content, start, end) if _is_whole(content.rstrip(".,")) and _LETTER_OR_DIGIT.search(content) else nothing


def with_multiplier(number: str, rest: str) -> str | None:
    """The number with the word that multiplies it at the beginning of the rest. None if another word changes the number."""
    if match := _MULTIPLIER.match(rest):
        return f"{number} {match.group(1).lower()}"
    return None if _CHANGE.match(rest) else number
