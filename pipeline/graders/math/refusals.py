"""Recognizes a text that says at its end that it has no answer, or that no answer can be determined. Pure, linear time.

What else a text without an answer contains is no answer, unless it marks one. A text goes on after "it cannot be solved by
radicals", which is about one way, and after "I am stuck here, so we use numbers", which names another way.
"""

import re
from re import Match

MAX_TAIL = 600
"""A refusal before this many last characters is not the end of a text."""


def _one_of(phrases: str) -> str:
    """A pattern for one of the phrases of a list with commas."""
    return f"(?:{'|'.join(phrases.split(', '))})"


def _before(phrases: str) -> str:
    """A pattern for one of the phrases of a list and a blank, or nothing."""
    return f"(?:{_one_of(phrases)} )?"


_ABLE = _one_of("cannot, can ?not, can'?t, could not, couldn'?t, will not be able to, won'?t be able to")
_SOLVE = "(?:{}{{0,2}}{})".format(
    f"(?:{_one_of('fully, actually, really, possibly, quite, just, simply, even, seem to, be able to, manage to')} )",
    _one_of(
        "solve, answer, determine, find, compute, calculate, complete, finish, say, help, assist, simplify, proceed, continue,"
        " go on, go any further, go further, figure, work (?:it|this|that) out, conclude, tell, do (?:it|this|that), provide,"
        " give an?, give the, get any further, get further, get anywhere, come up with, arrive at, reach, decide, evaluate,"
        " make (?:any )?(?:more )?progress, see (?:how|what|any|a way)"
    ),
)
_SOLVED = _one_of(
    "solved, done, answered, determined, found, computed, calculated, evaluated, decided, established, known, deduced,"
    " inferred, resolved, completed"
)
_BE = r"(?:'m|'re| am| are| was| were| remain| feel| got| get)"
_KNOWN = (
    _one_of(
        _one_of(
            "solv, answer, determin, comput, calculat, continu, proceed, finish, complet, progress, clue, solution, conclu"
        )
    )
    + "[a-z]*"
)
_DETAILS = _one_of("information, data, details")
_SUBJECT = re.compile(r"\b(?:i|we)\b")
# What follows "I" or "we".
_INABILITY = re.compile(
    rf"(?: {_one_of('[a-z]{1,12}ly, still, just, also, am afraid i, am afraid we, fear i, fear we')})?(?:"
    rf" {_ABLE} (?:{_SOLVE}|be (?:sure|certain))"
    rf"|{_BE} {_before('still, just, simply, completely, totally')}(?:unable|not able) to {_SOLVE}"
    r"| (?:do not|don'?t|did not|didn'?t) (?:[a-z]{1,12}ly )?(?:know|understand|see (?:how|a way|any way)"
    r"|have (?:enough|sufficient|an?|any|the)|(?:have|get|find) (?:an? |the |any )?(?:answer|solution))"
    rf"| (?:lack|am missing|are missing|would need|will need|need) "
    rf"{_before('the, some, more, enough, sufficient, further, additional')}"
    rf"(?:{_DETAILS}|{_one_of('info, time, tools, knowledge, help, context, a calculator, a computer')})"
    r"| (?:leave|left) (?:it|this|the [a-z]{1,12}) (?:open|unsolved|unfinished|here|there|blank|undone)"
    rf"| (?:wasn't|weren't|isn't|aren't) able to {_SOLVE}|(?: have|'m having| had| am having) trouble"
    r"| (?:doubt|(?:do not|don'?t) (?:think|believe)) (?:that )?(?:i|we|it|this|that)"
    r"(?: [a-z]{1,12}){0,2} (?:can|could|will|is possible)"
    rf"|(?: (?:have|had|did|do|could|am|are|was|were))?(?: not| never|n'?t|dn'?t) (?!need|have|want|use)[a-z' ]{{0,24}}{_KNOWN}"
    rf"|{_BE} (?:skipping|leaving) (?:this|it)| can no longer {_SOLVE}| (?:have|had) not been able to {_SOLVE}"
    rf"| {_one_of('have, had, got, found, see, know, know of, could find, can find, can see, can offer')} no "
    r"(?:idea|clue|answer|solution|way to|result|means|further)"
    rf"| {_one_of('failed, fail, was unable, were unable, struggle, struggled, have failed')} to {_SOLVE}"
    rf"|(?:{_one_of(' have to, must, will, shall')}|'ll)? "
    r"(?:give up|gave up|surrender|quit|pass on this|decline|refuse|skip (?:this|it)|concede|(?:admit|accept) defeat"
    r"|throw in the towel)"
    rf"|(?: have| had|'ve|'ll| will)? (?:lose|lost) (?:track|count|the thread|my way|our way)"
    r"|(?: can| could|'ll|'d| will| would| must| have to)?(?: only| just| merely| at best){1,2} (?:guess|speculate)"
    r"|(?: will not| won'?t| shall not| choose not to| prefer not to| would rather not) "
    r"(?:answer|attempt|try|solve|finish|continue|give|provide)"
    rf"|(?: must| will|'ll)? stop here\.|{_BE} giving up"
    r")(?![a-z])"
)
# "I am not sure" and "I am stuck" end a text only if no other way follows.
_DOUBT = re.compile(
    rf"(?:{_BE} {_before('still, just, simply, really, completely, totally, a bit, so, hopelessly, now')}"
    rf"(?:not {_before('really, quite, entirely, completely, at all')}(?:sure|certain|confident)"
    rf"|{_one_of('unsure, uncertain, stuck, lost, confused, at a loss, clueless, in the dark, stumped, blocked')}"
    r"|out of (?:ideas|time|options))"
    r"|(?: have| had)? (?:run|ran) out of (?:ideas|time|space))\b"
)
_PHRASE = re.compile(
    r"\b(?:(?:must|have to|better) give up|(?:unclear|not clear) (?:how|what) to|over my head|let me stop here"
    r"|draw(?:ing)? a blank"
    rf"|{_one_of('impossible, too hard, too difficult, too complex, too complicated, too much, too advanced')} for (?:me|us)"
    r"|(?:beyond|above|outside) (?:(?:me|us)|(?:my|our) "
    r"(?:abilit|capabilit|reach|skill|power|scope|knowledge|means|head)[a-z]*)"
    r"|(?:beyond|above|outside|exceeds?|exceeding|surpass(?:es)?) (?:what|anything|everything) (?:i|we) "
    r"(?:can|could|am able|are able|know|understand)|(?:exceeds?|exceeding|surpass(?:es)?) (?:my|our) "
    r"(?:abilit|capabilit|capacit|skill|power|knowledge|understanding|reach|means|competence)[a-z]*"
    r"|no way (?:that )?(?:(?:i|we) (?:can|could|will|am|are)|for (?:me|us))"
    r"|(?:it|this|that|problem|question) (?:is|stays|goes) (?:still )?(?:unsolved|unanswered|unfinished)"
    r"|time(?:(?:'s| is| was) (?:up|over)(?=[.!,;\n]|$)|(?: has)? (?:run|ran) out)"
    r"|(?:eludes|escapes|defeats|beats|puzzles) (?:me|us)|no (?:further|more) progress"
    r"|no (?:conclusion|answer) can be (?:drawn|reached|given)"
    rf"|{_one_of('it, this, that, problem, question, answer, solution, result')} remains "
    rf"{_one_of('open, unsolved, unanswered, unfinished, unknown')}"
    r"|no (?:answer|solution|result) (?:was |is |could be |can be |has been )?"
    r"(?:found|obtained|reached|available|given by me|known)"
    r"|(?:answer|solution|result) (?:was |is |has )?"
    r"(?:not (?:been )?(?:found|obtained|reached|available|known)|unknown|unclear|out of reach))\b"
)
_SETBACK_HINTS = ("fail", "work", "nowhere", "in vain", "unsuccessful", "futile", "dead")
_PHRASE_HINTS = (
    "give up", " for me", " for us", "beyond", "above ", "outside ", "eludes", "escapes", "defeats", "beats",
    "puzzles", "blank", "clear", "over my head", "stop here", "progress", "no conclusion", "no answer", "no solution",
    "no result", "remain", " not ", "unknown", "out of reach", "exceed", "surpass", "no way", " is un",
    "stays", "goes", "time",
)  # fmt: skip
# What ends a text only if no other way follows: "my attempt failed", "this is a dead end".
_SETBACK = re.compile(
    r"\b(?:(?:my|our) (?:[a-z]{1,12} ){0,2}(?:attempt|approach|effort|method|way|tr(?:y|ies)|idea)(?:s|es)? "
    r"(?:(?:have|has|had|all|also|just|of mine) ){0,2}(?:fail|failed|fails|(?:did|do|does)(?: not|n't) work"
    r"|(?:lead|leads|led) nowhere|(?:is|are|was|were) (?:in vain|unsuccessful|futile))|dead[ -]ends?)\b"
)
_OTHER_WAY = re.compile(r"\b(?:instead|another|other|second|using|next|again|alternatively)\b")
_AT_FIRST = re.compile(r"\b(?:at first|initially|first|in the beginning)\b")
_BUT_THEN = re.compile(r"\b(?:but|then|now|later|finally|eventually|after that)\b")
# A sentence without a subject: "Unable to solve."
_ALONE = re.compile(
    rf"(?:^|[.!?:;\n*]\s{{0,3}})(?:{_one_of('sorry, unfortunately, apologies, sadly, alas')},? )?"
    rf"(?:(?:still )?(?:unable|not able|failed|impossible|no way) to {_SOLVE}|{_ABLE} {_SOLVE}|(?:have )?"
    r"(?:no (?:idea|clue)|no (?:final )?answer(?=[.;!])"
    r"|(?:pass|unsolved|unknown|n/a|idk|dunno|(?:it's |it is )?unclear|(?:hard|impossible) to say|time's up)(?=[.,;:!])"
    rf"|not possible to {_SOLVE}"
    rf"|{_one_of('not sure, unsure, stuck, skipped, skipping')}|don'?t know|giving up|gave up|give up))\b"
)
_IMPERSONAL = re.compile(
    rf"\b(?:{_ABLE} be {_before('uniquely, fully, reliably, exactly, definitely')}{_SOLVED}"
    rf"|(?:is|are|was|it'?s|seems|appears) (?:not possible|impossible) to {_SOLVE}"
    rf"|there (?:is|seems to be|appears to be) no way (?:to|of) {_SOLVE}"
    r"|unsolvable|not solvable|unanswerable|indeterminable|indeterminate"
    rf"|(?:not|isn't|n't|without) (?:given )?(?:enough|sufficient) (?:{_DETAILS}|context)"
    rf"|(?:insufficient|too little|incomplete|not sufficient|missing) {_DETAILS}"
    rf"|{_DETAILS}(?: [a-z]{{1,12}}){{0,3}} (?:is|are) "
    r"(?:missing|insufficient|incomplete|lacking|not (?:enough|sufficient|given|available|provided))"
    rf"|(?:more|further|additional) {_DETAILS} (?:is|are|would be) (?:needed|required|necessary)"
    rf"|(?<!not )(?<!n't )(?:needs?|requires?) (?:more|further|additional) {_DETAILS})\b"
)
_IMPERSONAL_HINTS = (
    "be ",
    "possible",
    "no way",
    "solvable",
    "answerable",
    "indeterm",
    "information",
    "data",
    "details",
    "context",
)
# "We cannot solve it directly", "it cannot be solved by radicals" and "I cannot see it yet, so we expand" do not refuse.
_DIRECTLY = (
    rf"(?: {_one_of('it, this, them, that, the equation, this equation')})?(?: \w{{1,20}})? "
    + _one_of(
        r"directly, exactly, analytically, by \w{1,20}ing, by hand, by inspection, algebraically, explicitly, in closed form,"
        " in general, in one step, at once, yet, at first, immediately, right away, without"
    )
    + r"\b"
)
_QUALIFIED = re.compile(rf"{_DIRECTLY}| (?:by|using|through|via) (?!me\b|us\b)")
_LIMITED = re.compile(
    rf"{_DIRECTLY}| {_one_of('by, using, through, via, over, in terms of, in, for, from, with, unless, until, if, when, as')} "
    rf"(?!what\b|{_before('the, this, these, our, my, your, all')}(?:\w{{1,12}} )?"
    + _one_of(
        r"given, provided, available, information, data, problem, question, stated, this point, me\b, us\b, the moment, now,"
        r" certain, sure, known, present, time, tools, knowledge, abilit, current, detail, context, above, info\b"
    )
    + ")"
)
_LINK = r"\b(?:so|thus|hence|therefore|instead|but|then|however|yet)\b,?"
_GOES_ON = re.compile(rf"{_LINK} we\b|\bwe (?:get|find|use)\b")
_METHOD = re.compile(
    rf"{_LINK} (?:then |now |instead,? )?(?:i|we|let us|let me)(?:'ll)? "
    + _before("will, can, now, then, instead, simply, just, first, may")
    + _one_of(
        "use, expand, apply, compute, calculate, factor, substitute, rewrite, switch, turn, work, write, multiply, add,"
        " approximate, proceed, look, take, start, begin, split, square, note, count, draw, check, consider, complete, set,"
        " plug, divide, subtract, list, go back, return, try"
    )
    + r"\b"
)
_RECOVERS = re.compile(
    rf"(?:{_LINK}|\buntil\b)[^.\n]{{0,60}}\b"
    + _one_of(
        "found, find, saw, see, realized?, noticed?, got, obtain, worked, works, helps?, clear, suffices?,"
        " gives?, shows?, is, are"
    )
    + r"\b"
)
_GUESS = re.compile(r"\b(?:guess\w*|perhaps|maybe|sorry|think|believe|suppose|probably|seems?)\b")
_UNDETERMINED = re.compile(
    r"(?:[a-z,'-]{1,20} ){0,24}"
    rf"(?:(?P<cannot>{_ABLE} be (?:uniquely )?{_one_of('determined, found, known, calculated, computed, deduced')})"
    r"|(?:not|isn't) (?:enough|sufficient) information|insufficient information)(?: [a-z'-]{1,20}){0,12}[.!]?"
)
# Every refusal contains one of these. They are quicker to look for.
_HINTS = (
    "ot ", "n't ", "nt ", "nable to", "nsufficient", "too ", "give up", "gave up", "giving up", "mpossible",
    "no idea", "no clue", "stuck", "beyond", "above ", "outside ", "no way", "nsure", "ncertain", "lost", "confused",
    "a loss", "out of", "clueless", "dark", "stump", "blocked", "ail", "no answer", "no solution", "no result",
    "nswer", "olution", "esult", "unsolv", "indeterm", "ncomplete", "issing", "information", "data", "details",
    "surrender", "decline", "refuse", "pass on", "struggle", "no means", "no further", "elude", "escape", "defeat",
    "beats", "puzzle", "nclear", "no more", "onclusion", "remain", "skip", "stop here", "leave", "left", "lack",
    " need", "no longer", "blank", "trouble", "doubt", "quit", "never", "my head", "pass", "unknown", "n/a", "idk",
    "dunno", "to say", "time's up", "exceed", "surpass", "dead", "guess", "speculate", "oncede", "towel",
    "time is", "time was", "time has", "time ran", "work", "nowhere", "in vain", "futile", "won't",
)  # fmt: skip


def refuses(text: str) -> bool:
    """Whether the end of a text says that it has no answer, and no conclusion follows."""
    tail = text[-MAX_TAIL:].lower().replace("\u2019", "'")
    if not any(hint in tail for hint in _HINTS):
        return False
    subjects = [match.end() for match in _SUBJECT.finditer(tail)]
    return (
        _gives_up(tail, subjects)
        or _doubts(tail, subjects)
        or (any(hint in tail for hint in _IMPERSONAL_HINTS) and _is_undecidable(tail))
    )


def undetermined(text: str) -> str | None:
    """The answer of a text whose last sentence says that nothing can be determined, else None."""
    line = text[-MAX_TAIL:].rstrip().rpartition("\n")[2].lower()
    match = _UNDETERMINED.fullmatch(line[line.rfind(". ") + 1 :].strip(" *"))
    if match is None:
        return None
    return "cannot be determined" if match["cannot"] else "not enough information"


def _gives_up(tail: str, subjects: list[int]) -> bool:
    ends = [(found.end(), at) for at in subjects if (found := _INABILITY.match(tail, at))]
    ends += [(found.end(), 0) for found in _ALONE.finditer(tail)]
    if any(hint in tail for hint in _PHRASE_HINTS):
        ends += [(found.end(), 0) for found in _PHRASE.finditer(tail)]
    if not ends:
        return False
    end, subject = max(ends)
    after = tail[end:]
    if _QUALIFIED.match(after):
        return False
    if _GUESS.search(after):
        return True
    if _METHOD.search(after):
        return False
    # "We" may go on where "I" has given up.
    return not tail[:subject].endswith("we") or not (_GOES_ON.search(after) or _RECOVERS.search(after))


def _doubts(tail: str, subjects: list[int]) -> bool:
    found = [doubt for at in subjects if (doubt := _DOUBT.match(tail, at))]
    found += list(_SETBACK.finditer(tail)) if any(hint in tail for hint in _SETBACK_HINTS) else []
    ends = [doubt.end() for doubt in found]
    after = tail[max(ends) :] if ends else ""
    goes_on = _QUALIFIED.match(after) or _METHOD.search(after) or _RECOVERS.search(after)
    if ends and not goes_on and _AT_FIRST.search(tail, 0, max(ends)):
        # "At first I was not sure how to begin. But then x = 5."
        goes_on = _BUT_THEN.search(after)
    if ends and not goes_on and max(found, key=Match.end).re is _SETBACK:
        # "This is a dead end. Using the other one, x = 5."
        goes_on = _OTHER_WAY.search(after)
    return bool(ends) and (not goes_on or _GUESS.search(after) is not None)


def _is_undecidable(tail: str) -> bool:
    ends = [found.end() for found in _IMPERSONAL.finditer(tail)]
    after = tail[max(ends) :] if ends else ""
    if not ends or _LIMITED.match(after):
        return False
    goes_on = _METHOD.search(after) or _GOES_ON.search(after) or _RECOVERS.search(after)
    return not goes_on or _GUESS.search(after) is not None
