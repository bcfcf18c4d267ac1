r"""Decides whether words deny a value ("not 5", "twice 5", "\boxed{5} is wrong") or refuse to give one. Pure, linear time.

The words that count stand in the clause of the value, up to `REACH` characters before it, and right after it. "It is not hard
to see that the answer is 5" denies nothing: words between the denial and the value begin another statement. A box is no answer
only if it is denied; a formula or number also if it is a bound ("at most 5"), one of two, asked for, or assumed.

What a text that says at its end that it has no answer contains is no answer, unless it marks one. A text goes on after "it
cannot be solved by radicals", which is about one way, and after "I am stuck here, so we use numbers", which names another way.
The phrases are in `languages`.
"""

import re

from pipeline.graders.math.wording import PHRASES, phrase

REACH = 120
MAX_TAIL = 600  # A refusal before it is not the end of a text.

_BEGIN = r"(?:^|[.!?:;\n*]\s{0,3})(?:(?:sorry|unfortunately|apologies|sadly|alas),? )?(?:still )?"
_SAID = r"(?: |(?='))(?:(?!not )[a-z']{1,12} ){0,3}"
# "can't" becomes "ca not" in a text that is searched.
_NOT = re.compile(r"n't\b|(?<=\bdo)nt\b|(?<=\bca)n?not\b|(?<=\bca)nt\b")
_DIRECTLY = phrase("<directly>| (?:by|using|through|via) (?!me\\b|us\\b)")
_GUESS = phrase(r"\b<guess>\b")
# Words that give up, what may follow at once, and what goes on later. "We" may go on where "I" may not.
_REFUSALS = (
    (
        phrase(rf"\bi{_SAID}<inability>(?![a-z])|{_BEGIN}(?:<able> <solve>|<curt>)\b|\b<resignation>\b"),
        _DIRECTLY,
        phrase("<method>"),
    ),
    (phrase(rf"\bwe{_SAID}<inability>(?![a-z])"), _DIRECTLY, phrase("<method>|<recovery>")),
    (phrase(rf"\b(?:i|we){_SAID}<doubt>\b|\b<setback>\b"), _DIRECTLY, phrase(r"<method>|<recovery>|\b<other_way>\b")),
    (phrase(r"\b<impossible>\b"), phrase("<limit>"), phrase("<method>|<recovery>")),
)
_UNDETERMINED = phrase(
    r"(?:[a-z,'-]{1,20} ){0,24}(?:(?P<cannot>(?:can ?not|can'?t|could not|couldn'?t) be (?:uniquely )?<solved>)"
    r"|(?:not|isn't) (?:enough|sufficient) information|insufficient information)(?: [a-z'-]{1,20}){0,12}[.!]?"
)


_BOLD = "**"
_OPENING, _CLOSING, _CLOSERS = " \t$*([{", " $*\n", " \t\n$*)]}\\"
_CLAUSE = re.compile(r"[.,;!?\n](?=\s|$)|:(?=\s*\S)")
_BEFORE = phrase(
    r"(?:(?:<negation> ?|<untrue>)<denial_links>:?|\b(?:<reject>|<change>) <denial_nouns>)[ $*(\[{\\]*$",
    re.IGNORECASE,
)
_STEM, _DENIAL_STEMS = re.compile(r"\b[a-z]{1,4}"), frozenset(PHRASES["denial_stems"][3:-1].split("|"))
_AFTER = phrase("<denied_after>", re.IGNORECASE)
# "Is it \boxed{5}?"; "if it were \boxed{5}, then"; "suppose it is \boxed{5}".
_MORE = r"(?!.*\b(?:then|so|thus|hence|we)\b)"
_IF = re.compile(rf"\s*(?:(?:so|but|and|now|then|that|what) )?if\b{_MORE}", re.IGNORECASE)
_SUPPOSE = phrase(rf"\s*(?:let us |let's |we )?<assume>\b{_MORE}", re.IGNORECASE)
_IF_GOES_ON = re.compile(r"(?:, (?:then|we|it|this|that|there|he|she|they|the)\b|then\b)")
# The first characters of what denies a value or asks for it, after the marks that close the value.
_GOES_ON = frozenset("?,(-\u2013\u2014abcdefghijklmnopqrstuvwxyzI")
# "by Theorem (B)", "see Figure (B)", "(A) or (B)".
_REFERENCE = phrase(r"<reference> ?\(?$", re.IGNORECASE)
# Only for values without a mark.
_BOUND = phrase(r"<bound> ?:? ?(?:\*\*)?[$\\(\[ ]*\n?$", re.IGNORECASE)
_CONDITION = re.compile(
    r"\s{0,4}(?:[Ii]f|[Ss]uppose|[Aa]ssume|[Ww]hether)\b(?![^.]*\b(?:then|we get|we find|we obtain)\b)"
    r"|.{0,400}\b(?:must|have to|need to) check\b"
)
_STATES = phrase(r"\b<concluded>\b", re.IGNORECASE)
# "It cannot be 5" contains a number but states no answer.
_DENIAL = re.compile(r"(?:\b(?:not|cannot|never|neither|nor)\b|n't\b)[^,;:.]*$", re.IGNORECASE)
# Of two values, the last one alone is not the answer.
_HEDGE = phrase(r"<hedge>|=[^=\n]{1,40}(?:\band\b|\bor\b|,)\s{0,3}[A-Za-z]\w?\s{0,3}=", re.IGNORECASE)
_INTERMEDIATE, _STATING = (phrase(f"<{key}>", re.IGNORECASE) for key in ("intermediate", "stating"))


def is_denied(before: str, after: str) -> bool:
    """Whether the text before or after a value denies it, changes it, asks for it or assumes it. For every kind of value."""
    after = after[:REACH].replace(_BOLD, "").lstrip(_CLOSERS)
    if after[:1] in _GOES_ON and (after[:1] == "?" or _AFTER.match(after)):
        return True
    clause = before[-REACH:]
    # The exact clause is looked for below. This is quick, and enough for most texts.
    clause = clause[max(clause.rfind("\n", 0, -2), clause.rfind(". ")) + 1 :]
    small = clause.lower()
    if "n't" not in small and "n\u2019t" not in small and _DENIAL_STEMS.isdisjoint(_STEM.findall(small)):
        return False
    clause = clause.replace(_BOLD, "")
    opened = clause.rstrip(_OPENING)
    cuts = [cut.end() for cut in _CLAUSE.finditer(opened, 0, max(0, len(opened) - 1))]
    clause = clause[cuts[-1] if cuts else 0 :]
    if _BEFORE.search(clause) or _SUPPOSE.match(clause):
        return True
    return _IF.match(clause) is not None and _IF_GOES_ON.match(after) is not None


def is_no_choice(before: str, after: str) -> bool:
    """Whether the letter of a choice is denied, is one of two, or is the name of a theorem or a figure."""
    return _REFERENCE.search(before[-REACH:]) is not None or is_denied(before, after)


def is_no_statement(before: str, after: str) -> bool:
    """Whether a formula without a mark is denied, or is a bound, one of two, asked for or a condition."""
    line = before[before.rfind("\n") + 1 :]
    question = after.rstrip(_CLOSING).endswith("?")
    asks = question or (_CONDITION.match(line) is not None and not _STATES.search(line))
    return asks or _BOUND.search(line) is not None or is_denied(before, after)


def is_condition(line: str) -> bool:
    """Whether a line is a condition, a question or a plan. Such a line states nothing."""
    return line.endswith("?") or _CONDITION.match(line) is not None


def hedges(line: str) -> bool:
    """Whether a line denies its last clause, compares its number, gives several, or names a step or a problem by it."""
    return _DENIAL.search(line.rstrip(". ")) is not None or _HEDGE.search(line) is not None


def is_intermediate(line: str) -> bool:
    """Whether the last sentence of a line states a count or probability that belongs to the solution, and is no result."""
    sentence = line[line.rfind(". ") + 1 :]
    return _INTERMEDIATE.search(sentence) is not None and _STATING.search(sentence) is not None


def refuses(text: str) -> bool:
    """Whether the end of a text says that it has no answer, and no conclusion follows."""
    tail = text[-MAX_TAIL:].lower().replace("\u2019", "'")
    tail = _NOT.sub(" not", tail) if any(map(tail.__contains__, ("n't", "dont", "cant", "canot", "cannot"))) else tail
    for refusal, limit, way_on in _REFUSALS:
        last = max(refusal.finditer(tail), key=lambda found: found.end(), default=None)
        if last is None or limit.match(tail, last.end()):
            continue
        if not way_on.search(tail, last.end()) or _GUESS.search(tail, last.end()):
            return True
    return False


def undetermined(text: str) -> str | None:
    """The answer of a text whose last sentence says that nothing can be determined, else None."""
    line = text[-MAX_TAIL:].rstrip().rpartition("\n")[2].lower()
    match = _UNDETERMINED.fullmatch(line[line.rfind(". ") + 1 :].strip(" *"))
    if match is None:
        return None
    return "cannot be determined" if match["cannot"] else "not enough information"
