"""What a sentence of Coq does, by its first word: only sentences that are known here get to Coq. Pure.

What a problem says is given, so it may have axioms, notations and scopes. A step may not: with them it could have Coq accept
anything. Neither may write files, load other code, or change what the kernel checks.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from pipeline.verifiers.coq.lexer import Sentence


class Effect(StrEnum):
    """What a sentence does. `focus`: a bullet or a brace. `question`: prints something, and does not get to Coq."""

    FOCUS = "focus"
    TACTIC = "tactic"
    STATEMENT = "statement"
    PROOF = "proof"
    END = "end"
    DEFINITION = "definition"
    CONTEXT = "context"
    QUESTION = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A sentence that is read. `name`: what it declares, if that must be new. `refusal`: why it does not get to Coq."""

    sentence: Sentence
    effect: Effect
    name: str = ""
    refusal: str = ""


STATEMENTS = frozenset(
    ["Corollary", "Example", "Fact", "Goal", "Lemma", "Property", "Proposition", "Remark", "Theorem"]
)
DEFINITIONS = frozenset({"Definition", "Fixpoint"})
ENDS = frozenset({"Qed", "Defined"})
PROOFS = frozenset({"Proof", "Unshelve"})
QUESTIONS = frozenset(
    ["About", "Check", "Compute", "Eval", "Locate", "Print", "Search", "SearchPattern", "SearchRewrite", "Show"]
)
GIVEN = frozenset(
    [
        "Admitted",
        "Arguments",
        "Axiom",
        "Axioms",
        "Bind",
        "Canonical",
        "Class",
        "Close",
        "CoFixpoint",
        "CoInductive",
        "Coercion",
        "Conjecture",
        "Context",
        "Create",
        "Declare",
        "Delimit",
        "End",
        "Existing",
        "Export",
        "Generalizable",
        "Hint",
        "Hypotheses",
        "Hypothesis",
        "Implicit",
        "Import",
        "Inductive",
        "Infix",
        "Instance",
        "Let",
        "Ltac",
        "Module",
        "Notation",
        "Opaque",
        "Open",
        "Parameter",
        "Parameters",
        "Record",
        "Reserved",
        "Scheme",
        "Section",
        "Set",
        "Structure",
        "Tactic",
        "Transparent",
        "Unset",
        "Variable",
        "Variables",
        "Variant",
    ]
)
"""What a problem may have and a step may not: it may change what later sentences mean, or make them true."""
TACTICS = frozenset(
    [
        "absurd",
        "all",
        "apply",
        "assert",
        "assumption",
        "auto",
        "autorewrite",
        "autounfold",
        "btauto",
        "by",
        "case",
        "case_eq",
        "cbn",
        "cbv",
        "change",
        "clear",
        "clearbody",
        "compute",
        "congruence",
        "constructor",
        "contradict",
        "contradiction",
        "cut",
        "decide",
        "decompose",
        "dependent",
        "destruct",
        "discrR",
        "discriminate",
        "do",
        "eapply",
        "eassert",
        "eassumption",
        "easy",
        "eauto",
        "ecase",
        "econstructor",
        "edestruct",
        "eelim",
        "eenough",
        "eexact",
        "eexists",
        "einduction",
        "einjection",
        "eleft",
        "elim",
        "elimtype",
        "enough",
        "epose",
        "eqn",
        "erewrite",
        "eright",
        "esplit",
        "etransitivity",
        "exact",
        "exfalso",
        "exists",
        "f_equal",
        "field",
        "field_simplify",
        "first",
        "firstorder",
        "fold",
        "generalize",
        "hnf",
        "idtac",
        "induction",
        "injection",
        "instantiate",
        "intro",
        "intros",
        "intuition",
        "inversion",
        "inversion_clear",
        "lazy",
        "lazymatch",
        "left",
        "let",
        "lia",
        "lra",
        "match",
        "move",
        "multimatch",
        "nia",
        "now",
        "nra",
        "nsatz",
        "only",
        "par",
        "pattern",
        "pose",
        "progress",
        "psatz",
        "red",
        "refine",
        "reflexivity",
        "remember",
        "rename",
        "repeat",
        "replace",
        "revert",
        "rewrite",
        "rewrite_strat",
        "right",
        "ring",
        "ring_simplify",
        "rtauto",
        "set",
        "setoid_reflexivity",
        "setoid_replace",
        "setoid_rewrite",
        "setoid_symmetry",
        "setoid_transitivity",
        "shelve",
        "simpl",
        "simple",
        "solve",
        "specialize",
        "split",
        "split_Rabs",
        "split_Rmult",
        "stepl",
        "stepr",
        "subst",
        "symmetry",
        "tauto",
        "transitivity",
        "transparent_abstract",
        "trivial",
        "try",
        "unfold",
        "unify",
        "unshelve",
        "vm_compute",
        "xlia",
        "zify",
    ]
)
"""The words that a tactic begins with. One that a problem defines itself is not among them."""
NEVER = re.compile(
    r"\w*native_\w+|\w+_no_check|timeout|time|Timeout|Time|Fail|Redirect|Extraction|Ltac2|external|Drop|Load"
)
"""Words of no sentence: they write, load, postpone a check, or depend on the clock."""
NOT_BY_STEPS = frozenset(
    [
        "Admitted",
        "abstract",
        "admit",
        "cofix",
        "cycle",
        "epose",
        "evar",
        "fix",
        "give_up",
        "ltac2",
        "revgoals",
        "shelve",
        "shelve_unifiable",
        "swap",
        "unshelve",
        "where",
    ]
)
"""What these leave out is missed by a later `Qed` at the earliest: `fix` and `cofix` are not checked, others put goals off."""
STATING = frozenset(
    [
        "absurd",
        "assert",
        "contradict",
        "cut",
        "cutrewrite",
        "eassert",
        "eenough",
        "elimtype",
        "enough",
        "etransitivity",
        "exfalso",
        "replace",
        "setoid_replace",
        "setoid_transitivity",
        "stepl",
        "stepr",
        "transitivity",
    ]
)
"""Tactics that have a new goal, which nothing makes true."""
PROVED_FIRST = frozenset({"assert", "eassert", "replace"})
"""Those whose own goal comes first, or is what `by` proves."""
TACTIC_MODULES = frozenset(
    ["ArithRing", "Btauto", "Field", "Lia", "Lqa", "Lra", "NArithRing", "Psatz", "Ring", "ZArithRing"]
)
"""Libraries that a step may ask for: they bring tactics, and open no scope."""
LIBRARIES = frozenset(
    [
        "Arith",
        "Bool",
        "Classes",
        "FSets",
        "Init",
        "Lists",
        "Logic",
        "MSets",
        "NArith",
        "Numbers",
        "PArith",
        "Program",
        "QArith",
        "Reals",
        "Relations",
        "Setoids",
        "Sets",
        "Sorting",
        "Strings",
        "Structures",
        "Unicode",
        "Vectors",
        "Wellfounded",
        "ZArith",
        "btauto",
        "micromega",
        "nsatz",
        "rtauto",
        "setoid_ring",
    ]
)
"""Folders of Coq's own library that a problem may ask for."""
MODULES = (
    frozenset(
        [
            "Arith",
            "Arith_base",
            "Ascii",
            "Basics",
            "BinInt",
            "BinNat",
            "BinPos",
            "Bool",
            "Bvector",
            "Classical",
            "ClassicalChoice",
            "ClassicalDescription",
            "ClassicalEpsilon",
            "ClassicalFacts",
            "ClassicalUniqueChoice",
            "Classical_Pred_Type",
            "Classical_Prop",
            "Compare_dec",
            "Constructive_sets",
            "Decidable",
            "Div2",
            "Ensembles",
            "EqNat",
            "Eqdep",
            "Eqdep_dec",
            "Equality",
            "EquivDec",
            "Euclid",
            "Even",
            "Factorial",
            "FinFun",
            "Finite_sets",
            "FunInd",
            "FunctionalExtensionality",
            "Gt",
            "Image",
            "JMeq",
            "Le",
            "List",
            "ListSet",
            "Lt",
            "Max",
            "Min",
            "Minus",
            "Morphisms",
            "Mult",
            "NArith",
            "Nat",
            "Natural",
            "Nsatz",
            "PArith",
            "PeanoNat",
            "Peano_dec",
            "Permutation",
            "Plus",
            "Program",
            "ProofIrrelevance",
            "PropExtensionality",
            "QArith",
            "Qabs",
            "Qfield",
            "Qpower",
            "Qreals",
            "Qround",
            "R_sqrt",
            "Ranalysis",
            "Rbase",
            "Rbasic_fun",
            "Reals",
            "RelationClasses",
            "Relation_Definitions",
            "Relation_Operators",
            "Relations",
            "Rfunctions",
            "Rpower",
            "Rtauto",
            "Rtrigo",
            "Rtrigo_def",
            "Setoid",
            "SetoidClass",
            "Sorted",
            "Sorting",
            "String",
            "Sumbool",
            "Utf8",
            "Utf8_core",
            "Vector",
            "Wellfounded",
            "Wf",
            "Wf_nat",
            "ZArith",
            "ZArith_base",
            "ZArith_dec",
            "Zdiv",
            "Znumtheory",
            "Zpow_facts",
            "Zpower",
        ]
    )
    | TACTIC_MODULES
)
"""Libraries that may be asked for without the name of their folder."""
_UNSAFE = re.compile(
    r"\w*[IUS]\w*nt63|\w*Float\w*|PrimInt\w*|PArray|Cyclic\w*|Extr\w*|SetIsType|Hurkens|Diaconescu|Berardi\w*"
)
"""Libraries of machine numbers, of code, and of what other axioms contradict."""
_OPTIONS = frozenset(
    {
        *(
            "Implicit Arguments",
            "Strict Implicit",
            "Contextual Implicit",
            "Maximal Implicit Insertion",
            "Asymmetric Patterns",
        ),
        *("Reversible Pattern Implicit", "Strongly Strict Implicit", "Primitive Projections", "Universe Polymorphism"),
        *("Elimination Schemes", "Boolean Equality Schemes", "Decidable Equality Schemes", "Structural Injection"),
    }
)
"""Options that a problem may set. Others take checks away, or are not known to be harmless."""
_DECLARED = frozenset({"Scope", "Instance"})
"""What may follow `Declare`. Others load code."""
STANDARD = frozenset(
    [
        "Even",
        "False",
        "I",
        "In",
        "N",
        "Nat",
        "O",
        "Odd",
        "Prop",
        "Q",
        "R",
        "Rle",
        "Rlt",
        "Rmult",
        "Rplus",
        "S",
        "True",
        "Z",
        "Zle",
        "Zlt",
        "add",
        "and",
        "andb",
        "app",
        "bool",
        "div",
        "eq",
        "eq_refl",
        "even",
        "ex",
        "false",
        "ge",
        "gt",
        "iff",
        "le",
        "length",
        "list",
        "lt",
        "map",
        "max",
        "min",
        "minus",
        "modulo",
        "mul",
        "mult",
        "nat",
        "negb",
        "not",
        "odd",
        "option",
        "or",
        "orb",
        "plus",
        "positive",
        "pow",
        "prod",
        "rev",
        "string",
        "sub",
        "sum",
        "true",
        "unit",
    ]
)
"""Names that a step may not bind: what it says of them would mean something else."""
_BINDERS = frozenset(
    [
        "as",
        "eqn",
        "exists",
        "forall",
        "fun",
        "intro",
        "intros",
        "let",
        "pose",
        "remember",
        "rename",
        "set",
        "λ",
        "∀",
        "∃",
    ]
)
_WITH_TERMS = frozenset({"exists", "pose", "set", "remember"})
"""Tactics that are followed by a term."""
_BETWEEN = frozenset("[]|(){},:!&*'")
_NAME = re.compile(r"[^\W\d][\w']*")
_PREFIXES = frozenset({"Local", "Global"})


def command(sentence: Sentence, *, given: bool) -> Command:
    """What a sentence does. `given`: whether it is one of a problem, and not of a step."""
    if not sentence.text.endswith("."):
        return Command(sentence=sentence, effect=Effect.FOCUS)
    tokens = sentence.tokens[1:] if sentence.tokens[:1] and sentence.tokens[0] in _PREFIXES else sentence.tokens
    if not tokens:
        return _refused(sentence, "an empty sentence is not read")
    if never := next((word for word in sorted(sentence.words) if NEVER.fullmatch(word)), ""):
        return _refused(sentence, f"`{never}` does not get to Coq")
    if any("<" in token or "Toplevel" in token for token in tokens if token.startswith('"')) and not given:
        return _refused(sentence, "a string with `<` does not get to Coq")
    if not given and (refusal := _refusal_of_step(sentence)):
        return _refused(sentence, refusal)
    return _by_first_word(sentence, tokens, given=given)


def _by_first_word(sentence: Sentence, tokens: tuple[str, ...], *, given: bool) -> Command:
    first = tokens[0]
    if first in STATEMENTS or first in DEFINITIONS:
        return _declaration(sentence, tokens, given=given)
    if first in ENDS or first in PROOFS:
        is_end = first in ENDS or (first == "Proof" and tokens[1:2] not in ((), ("using",), ("with",)))
        return Command(sentence=sentence, effect=Effect.END if is_end else Effect.PROOF)
    if first in QUESTIONS:
        refusal = "a question with a string does not get to Coq" if any(each[0] == '"' for each in tokens) else ""
        return Command(sentence=sentence, effect=Effect.QUESTION, refusal=refusal)
    if first in ("Require", "From"):
        return Command(sentence=sentence, effect=Effect.CONTEXT, refusal=_refusal_of_require(tokens, given=given))
    if first in GIVEN:
        refusal = _refusal_of_given(tokens) if given else f"`{first}` by a step may make anything true"
        return Command(sentence=sentence, effect=Effect.CONTEXT, refusal=refusal)
    if is_tactic(tokens):
        return Command(sentence=sentence, effect=Effect.TACTIC)
    return _refused(sentence, f"`{first}` is not read")


def is_tactic(tokens: tuple[str, ...]) -> bool:
    """Whether tokens begin like a tactic, after brackets and the names of goals: `2: lia`, `(intros; auto)`, `[ | lia ]`."""
    at = 0
    if len(tokens) > 2 and tokens[0].isdecimal():
        while at < len(tokens) and (tokens[at].isdecimal() or tokens[at] in ",-"):
            at += 1
        if at == len(tokens) or tokens[at] != ":":
            return False
        at += 1
    while at < len(tokens) and tokens[at] in ("(", "[", "|", ">"):
        at += 1
    return at < len(tokens) and tokens[at] in TACTICS


def _refusal_of_step(sentence: Sentence) -> str:
    if word := next((word for word in sorted(sentence.words) if word in NOT_BY_STEPS), ""):
        return f"`{word}` by a step is not looked into"
    if sentence.tokens[0] == "Let" or "#" in sentence.tokens[:1]:
        return f"`{sentence.tokens[0]}` by a step is not read"
    if bound := next(iter(bound_names(sentence.tokens)), ""):
        return f"the step gives the standard name `{bound}` another meaning"
    return ""


def bound_names(tokens: tuple[str, ...]) -> list[str]:
    """The standard names that stand where a name is bound."""
    found = []
    for at, token in enumerate(tokens):
        if token not in STANDARD:
            continue
        after = tokens[at + 1 : at + 3]
        is_typed = after[:1] == (":",) and _is_first_of_its_binder(tokens, at)
        if is_typed or _follows_binder(tokens, at):
            found.append(token)
    return found


def _is_first_of_its_binder(tokens: tuple[str, ...], at: int) -> bool:
    """Whether only names stand between a place and a bracket or a comma before it, as in `(n True : nat)`."""
    while at > 0 and _NAME.fullmatch(tokens[at - 1]) and tokens[at - 1] not in _BINDERS:
        at -= 1
    return at == 0 or tokens[at - 1] in ("(", "{", "[", "`") or tokens[at - 1] in _BINDERS


def _follows_binder(tokens: tuple[str, ...], at: int) -> bool:
    """Whether only names and signs of patterns stand between a place and a word that binds before it."""
    is_after_comma = False
    while at > 0:
        at -= 1
        token = tokens[at]
        if token in _BINDERS:
            return not is_after_comma and not (token in _WITH_TERMS and at == 0)
        if token == ":" or not (_NAME.fullmatch(token) or token in _BETWEEN):
            return False
        # A comma ends what `forall` binds, but not a pattern in brackets.
        is_after_comma = (is_after_comma or token == ",") and token not in ("(", "[")
    return False


def _declaration(sentence: Sentence, tokens: tuple[str, ...], *, given: bool) -> Command:
    first = tokens[0]
    effect = Effect.DEFINITION if first in DEFINITIONS else Effect.STATEMENT
    if first == "Definition" and not _has(tokens, ":", "="):
        effect = Effect.STATEMENT
    if first == "Goal":
        return Command(sentence=sentence, effect=effect)
    name = tokens[1] if len(tokens) > 1 else ""
    if not _NAME.fullmatch(name):
        return _refused(sentence, f"`{first}` without a plain name is not read")
    if given:
        return Command(sentence=sentence, effect=effect)
    if tokens.count("with") > tokens.count("match"):
        return _refused(sentence, "several declarations in one sentence of a step are not read")
    return Command(sentence=sentence, effect=effect, name=name)


def _has(tokens: tuple[str, ...], *wanted: str) -> bool:
    return any(tokens[at : at + len(wanted)] == wanted for at in range(len(tokens)))


def _refusal_of_require(tokens: tuple[str, ...], *, given: bool) -> str:
    rest = list(tokens)
    from_coq = rest[0] == "From"
    if from_coq:
        if rest[1:2] != ["Coq"]:
            return "only Coq's own library is loaded"
        rest = rest[2:]
    if rest[:1] != ["Require"]:
        return "`From` without `Require` is not read"
    rest = rest[1:]
    if rest[:1] and rest[0] in ("Import", "Export"):
        rest = rest[1:]
    for name in rest:
        parts = name.split(".")
        if parts[0] == "Coq":
            parts = parts[1:]
        known = (len(parts) == 1 and parts[0] in MODULES) or (len(parts) > 1 and parts[0] in LIBRARIES)
        if not known or any(map(_UNSAFE.match, parts)):
            return f"the library `{name}` is not loaded"
        if not given and parts[-1] not in TACTIC_MODULES:
            return f"the library `{name}` by a step may change what later sentences mean"
    return "" if rest else "`Require` of nothing is not read"


def _refusal_of_given(tokens: tuple[str, ...]) -> str:
    first = tokens[0]
    if first in ("Set", "Unset") and " ".join(tokens[1:]) not in _OPTIONS:
        return f"`{' '.join(tokens)[:60]}` is not read"
    if first == "Declare" and not (len(tokens) > 1 and tokens[1] in _DECLARED):
        return "`Declare` of anything but scopes and instances is not read"
    if first in ("Import", "Export") and not all(
        _NAME.fullmatch(part) for each in tokens[1:] for part in each.split(".")
    ):
        return f"`{first}` is read with plain names only"
    return ""


def _refused(sentence: Sentence, why: str) -> Command:
    return Command(sentence=sentence, effect=Effect.CONTEXT, refusal=why)
