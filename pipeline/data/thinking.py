"""Leaves the thinking of a model out of its text, whatever tags its family has. Pure, linear time.

Covered: `<think>` and its kin (`<thinking>`, `<thought>`, `<reasoning>`, `<reflection>`, `<seed:think>`), `[THINK]`, `◁think▷`,
`<|START_THINKING|>`, `<|begin_of_thought|>`, `<|channel>thought`, `<unused94>thought`, and channels of harmony, also without
their tokens ("analysis...assistantfinal..."). Thinking that the prompt opened has a closing tag alone.
A tag in quotes, or one within a sentence ("the tag <think> is used"), is a mention and opens nothing.
Not covered: thinking without tags, and thinking that the prompt opened and that never ends.
"""

import re

THINKING = (
    r"(?:(?:think(?:ing)?|thoughts?|reason(?:ing)?)(?:_process)?|reflect(?:ion)?|analysis|scratchpad|(?:inner_|internal_)?monologue"
    r"|cot|chain_of_thought)"
)
_TAG = re.compile(
    rf"[<\[◁](?:(?P<close>/?)(?P<name>(?:\w{{1,12}}[:_])?{THINKING})[ ]?>|(?P<end_of>/?)(?-i:THINK)\]|(?P<end>/?)think▷"
    rf"|\|(?:(?:(?:start|begin)(?:_of)?_)?{THINKING}(?:_start)?)\|>"
    rf"|(?P<token>\|(?:end(?:_of)?_{THINKING}|/{THINKING}|{THINKING}_end)\|>|channel\|>|unused95>"
    r"|\|end\|>|\|channel\|>final[^<\n]{0,40}<\|message\|>)"
    r"|(?P<channel>\|channel>(?:thought|analysis)\b|unused94>thought\b|\|channel\|>(?:analysis|commentary)[^<\n]{0,80}<\|message\|>))",
    re.IGNORECASE,
)
_SIGN = re.compile(r"<(?!/?(?:s|p|b|br|i|div|span|answer)>|\|im_)[|/\w]")
"""What every other tag begins with. It is quicker to look for."""
_MAX_NESTED = 8
_SPACE, _BETWEEN = " \t", " ./"
_NOTHING = frozenset({"", "and", "or", "and a"})
"""What stands between two tags that a sentence mentions."""
_QUOTES = frozenset("`\"'“”‘’")
# What stands before a tag that is no part of a sentence.
_BREAKS = frozenset("\n\r.!?:;。！？：…>]})*$▷")
_MENTION = re.compile(r"[ ](?:tags?|tokens?|is|are|and|or|was|were|means?|marks?|should|must|blocks?|sections?)\b")
_STRIPPED = re.compile(r"\s*analysis(?=[A-Z])")


def outside_thinking(text: str) -> list[str] | None:
    """The parts of a text outside its thinking, in order. None for thinking that does not end."""
    if not ("<" in text or "THINK]" in text or "◁" in text or "analysis" in text):
        return [text]
    if _STRIPPED.match(text):
        _, final, said = text.rpartition("assistantfinal")
        return [said] if final else None
    parts, start, opened, mention = list[str](), 0, list[str](), None
    for tag in _TAG.finditer(text) if "THINK]" in text or "◁" in text or ("<" in text and _SIGN.search(text)) else ():
        name = (tag["name"] or tag["channel"] or "").lower()
        if tag["close"] or tag["end_of"] or tag["end"] or tag["token"]:
            said = text[mention.end() : min(tag.start(), mention.end() + 20)].strip(_BETWEEN) if mention else "?"
            if _is_quoted(text, tag) or (not opened and (tag["token"] in ("|end|>", "channel|>") or said in _NOTHING)):
                continue
            if mention and not opened:
                parts.append(text[start : mention.start()])
            elif not opened:
                # The prompt opened this thinking.
                parts.clear()
            del opened[opened.index(name) if name in opened else 0 :]
            start, mention = tag.end(), None
        elif not opened and not tag["channel"] and _is_mentioned(text, tag):
            mention = None if _is_quoted(text, tag) else tag
        elif name not in opened and len(opened) < _MAX_NESTED:
            if not opened:
                parts.append(text[start : tag.start()])
            opened.append(name)
    return None if opened else [*parts, text[start:]]


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """Whether a quotation mark stands beside a tag. A fence is none."""
    before, after = text[max(0, tag.start() - 3) : tag.start()], text[tag.end() : tag.end() + 3]
    return (before[-1:] in _QUOTES and before != "```") or (after[:1] in _QUOTES and after != "```")


def _is_mentioned(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag that opens thinking stands in quotes or within a sentence."""
    before = text[max(0, tag.start() - 8) : tag.start()].rstrip(_SPACE)[-1:]
    named = before not in ("", "\n") and _MENTION.match(text, tag.end()) is not None
    return named or _is_quoted(text, tag) or before not in _BREAKS | {""}
