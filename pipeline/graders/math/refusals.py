"""Recognizes a text that says at its end that it cannot solve the problem. Pure, linear time.

What else such a text contains is no answer, unless it marks an answer.
"""

import re

MAX_TAIL = 600
"""A refusal before this many last characters is not the end of a text."""

_ABLE = r"(?:cannot|can ?not|can'?t|could not|couldn'?t|will not be able to|won'?t be able to)"
_SOLVE = (
    r"(?:fully |actually |really )?(?:solve|answer|determine|find|compute|calculate|complete|finish|say|help|simplify)"
)
_REFUSAL = re.compile(
    rf"\b(?:I|we) {_ABLE} {_SOLVE}\b"
    rf"|\b(?:I'm|we're|I am|we are|I was|we were) (?:unable|not able) to {_SOLVE}\b"
    r"|\b(?:I|we) (?:do not|don'?t|did not|didn'?t) (?:know|have (?:enough|sufficient))\b"
    r"|\b(?:not|isn't|n't) enough (?:information|data)\b|\b(?:insufficient|too little) (?:information|data)\b"
    r"|\b(?:I|we) give up\b|\bimpossible for (?:me|us) to\b|\bI have no idea\b",
    re.IGNORECASE,
)
# "We cannot solve it directly" and "we cannot see it yet, so we expand" do not refuse.
_QUALIFIED = re.compile(
    r"(?: (?:it|this|them|that))?(?: \w{1,20})?"
    r" (?:directly|exactly|analytically|by \w{1,20}ing|by hand|in closed form|in general)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\b(?:so|thus|hence|therefore|instead|but),? we\b|\bwe (?:get|find|use)\b", re.IGNORECASE)
_GUESS = re.compile(r"\b(?:guess\w*|perhaps|maybe|sorry)\b", re.IGNORECASE)


# Every refusal contains one of these. They are quicker to look for.
_HINTS = ("ot ", "n't ", "nable to", "nsufficient ", "too little ", "give up", "mpossible for", "no idea")


def refuses(text: str) -> bool:
    """Whether the end of a text says that it has no answer, and no conclusion follows."""
    tail = text[-MAX_TAIL:].replace("\u2019", "'")
    if not any(hint in tail for hint in _HINTS):
        return False
    refusals = list(_REFUSAL.finditer(tail))
    if not refusals or _QUALIFIED.match(tail, refusals[-1].end()):
        return False
    after = tail[refusals[-1].end() :]
    alone = refusals[-1].group().startswith("I")
    return alone or _GOES_ON.search(after) is None or _GUESS.search(after) is not None
