"""A chain as a file of Lean 4: which texts are checked together to judge a step. Pure.

A step is either commands (`theorem ... := by ...`), or tactics that go on with a proof that is open. Whether the proof ends
with them is not known, so they are checked with a `sorry` after them, too. A step may only prove: what else it may say in Lean
is not sent.
"""

import re
from dataclasses import dataclass

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.reading import NotRead, formal_part, has_words

SORRY = "sorry"
INDENT = "  "
"""Of tactics whose own is lost, because steps are trimmed."""
_LANGUAGES = frozenset({"lean", "lean4", "lean 4"})
_COMMAND = re.compile(r"^(?:theorem|lemma|example)\b", re.MULTILINE)
_FILE = re.compile(r"\s*(?:import|open|theorem|lemma|example|variable|namespace|section|def|noncomputable|universe)\s")
_TACTICS = [
    "intro",
    "intros",
    "rintro",
    "exact",
    "exact_mod_cast",
    "apply",
    "refine",
    "rw",
    "rwa",
    "simp",
    "simpa",
    "simp_all",
    "simp_rw",
    "ring",
    "ring_nf",
    "linarith",
    "nlinarith",
    "norm_num",
    "norm_cast",
    "push_cast",
    "push_neg",
    "omega",
    "constructor",
    "cases",
    "rcases",
    "obtain",
    "induction",
    "have",
    "show",
    "use",
    "by_contra",
    "by_cases",
    "field_simp",
    "positivity",
    "decide",
    "rfl",
    "trivial",
    "ext",
    "funext",
    "calc",
    "specialize",
    "contradiction",
    "left",
    "right",
    "exists",
    "unfold",
    "aesop",
    "tauto",
    "gcongr",
    "interval_cases",
    "subst",
    "case",
    "next",
    "all_goals",
    "any_goals",
    "suffices",
    "exfalso",
    "congr",
    "convert",
    "change",
    "let",
    "set",
    "replace",
    "nth_rewrite",
    "assumption",
    "symm",
    "split",
    "injection",
    "match",
    "fin_cases",
    "mod_cast",
    "bound",
    "grind",
]
_TACTIC = re.compile(rf"\s*(?:[·|]|\.\s|(?:{'|'.join(_TACTICS)})(?![\w']))")
_WORDS = [
    r"sorry\w*",
    r"admit",
    r"stop",
    r"axiom",
    r"native_decide",
    r"ofReduce\w+",
    r"trustCompiler",
    r"unsafe\w*",
    r"run_\w+",
    r"by_elab",
    r"elab\w*",
    r"macro\w*",
    r"syntax",
    r"declare_syntax_cat",
    r"notation\w*",
    r"infix\w*",
    r"prefix",
    r"postfix",
    r"set_option",
    r"implemented_by",
    r"extern",
    r"csimp",
    r"import",
    r"open",
    r"export",
    r"namespace",
    r"section",
    r"end",
    r"variable",
    r"universe",
    r"attribute",
    r"local",
    r"scoped",
    r"instance",
    r"def",
    r"abbrev",
    r"opaque",
    r"constant",
    r"partial",
    r"mutual",
    r"inductive",
    r"structure",
    r"class",
    r"deriving",
    r"initialize",
    r"builtin_initialize",
    r"private",
    r"protected",
    r"noncomputable",
    r"nonrec",
    r"include_str",
    r"dbg_\w+",
    r"termination_by",
    r"decreasing_by",
    r"hint",
    r"show_term",
    r"says",
    r"unseal",
    r"seal",
    r"include",
    r"omit",
    r"add_decl_doc",
    r"register_\w+",
    r"IO",
    r"Lean",
    r"System",
    r"eval\w*",
    r"exact\?",
    r"apply\?",
    r"rw\?",
    r"simp\?",
    r"aesop\?",
    r"polyrith",
    r"sleep",
    r"trace\w*",
    r"where",
    r"alias",
    r"irreducible",
    r"reducible",
    r"d?simproc\w*",
    r"prelude",
    r"module",
    r"public",
    r"meta",
]
_NOT_SENT = re.compile(rf"(?<![\w.])(?:{'|'.join(_WORDS)})(?![\w'])|[#`]|@\s*\[")
"""What a step may not say: it would prove nothing, run programs, or give names and notations another meaning."""
_LAST_SORRY = re.compile(r"\b(?:by\s+)?sorry\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Texts that are checked to judge a step. `before`: what stands before it, closed by a `sorry` if a proof is open.
    `whole`: with the step. `open`: with the step and a `sorry` after it, None if the step is commands.

    `has_words`: the step has words besides. `words_before`: a text before it has. `is_fenced`: blocks say that it is Lean."""

    before: str
    whole: str
    open: str | None
    has_words: bool
    words_before: bool
    is_fenced: bool


def question_of(step: StepInContext, header: str) -> Question | None:
    """What to ask about a step, None if it is not in Lean. `header`: goes before a problem without imports. Raises NotRead."""
    own = formal_part(step.step, _LANGUAGES, _is_step, "the step: ")
    if own is None:
        return None
    _refuse_unproving(own.commands, "the step")
    problem = formal_part(step.problem, _LANGUAGES, _is_file, "the problem: ")
    if problem is None and not own.is_fenced:
        return None
    words_before = has_words(problem, step.problem)
    texts = [] if problem is None else [_given(problem.commands)]
    for number, text in enumerate(step.earlier, start=1):
        part = formal_part(text, _LANGUAGES, _is_step, f"step {number}: ")
        words_before |= has_words(part, text)
        if part is None:
            if text.strip() and not own.is_fenced:
                raise NotRead(f"step {number} is not read as Lean")
            continue
        _refuse_unproving(part.commands, f"step {number}")
        texts.append(_indented(part.commands))
    is_command = _COMMAND.search(own.commands) is not None
    ours = own.commands.strip("\n") if is_command else _indented(own.commands)
    before = _joined(header if "import " not in "\n".join(texts) else "", *texts)
    indent = re.match(r"[ \t]*", ours)
    closing = f"{indent[0] if indent else INDENT}{SORRY}"
    return Question(
        before=before if is_command else _joined(before, closing),
        whole=_joined(before, ours),
        open=None if is_command else _joined(before, ours, closing),
        has_words=own.has_words,
        words_before=words_before,
        is_fenced=own.is_fenced,
    )


def _is_file(text: str) -> bool:
    return _FILE.match(text) is not None


def _is_step(text: str) -> bool:
    return _COMMAND.match(text) is not None or _TACTIC.match(text) is not None


def _refuse_unproving(text: str, name: str) -> None:
    if found := _NOT_SENT.search(text):
        raise NotRead(f"{name} says `{found[0].strip()}`, which is not sent")
    if text.count("/-") != text.count("-/"):
        raise NotRead(f"{name} has a comment that does not end")


def _given(text: str) -> str:
    """What a problem gives. A `sorry` at its end stands for the proof that the steps make. Raises NotRead for another one."""
    given = _LAST_SORRY.sub("by", text)
    if re.search(rf"\b{SORRY}\b", given):
        raise NotRead(f"the problem has a `{SORRY}` before its end")
    return given.strip("\n")


def _indented(text: str) -> str:
    """Tactics as the text has them; a first line without any indent gets one, because steps are trimmed."""
    text = text.strip("\n")
    return text if not text or text[0] in " \t" or _COMMAND.match(text) else f"{INDENT}{text}"


def _joined(*texts: str) -> str:
    return "\n".join(text for text in texts if text.strip())
