"""Generated chains of Coq whose last step proves nothing, or something false, and which a reader could take for proofs."""

import random

from pipeline.verifiers.base import StepInContext

FAMILIES = (
    "glue", "admits", "notations", "second names", "hidden names", "shadowing", "assumptions", "unguarded", "open goals",
)  # fmt: skip
FALSE = ("1 = 2", "0 = S 0", "2 + 2 = 5", "False", "true = false", "3 < 3", "forall n m : nat, n = m")
GLOBAL = (
    "plus", "False", "True", "eq", "nat", "S", "id", "tt", "Some", "fst", "pred", "xorb", "is_true", "sig", "comparison",
)  # fmt: skip
"""Names of Coq's, half of which no list here has."""
EVIL = (
    "admit", "give_up", "exact_no_check I", "vm_cast_no_check I", "native_cast_no_check I", "shelve", "cofix lie", "fix lie 1",
    "exfalso; shelve", "abstract admit", "unshelve refine _", "change_no_check True; exact I",
)  # fmt: skip
WRAPPED = (
    "{}.", "all: {}.", "1: {}.", "try {}.", "idtac; {}.", "first [ {} | idtac ].", "({}).", "once {}.", "only 1: {}.",
    "tryif idtac then {} else fail.", "exact ltac:({}).", "refine (let x := ltac:({}) in x).", "repeat (progress {}).",
    "solve [ {} ].", "now ({}).",
)  # fmt: skip
NUMBERS = ("1", "2", "0x1", "1_0", "01", "1.", "1'", '1""', "1(* *)", "1(*\n*)\t", "١", "¹", "１", "1\u00a0", "1\r\n")
NOTATIONS = ('"a + b" := (f a b)', '"a + b" := (f a b) : nat_scope', '"a * b" := (f a b) (at level 40)')
SHADOWED = (
    "forall {0} : Prop, {0} -> {0}", "forall (x {0} : Prop), {0} -> {0}", "let {0} := True in {0}", "exists {0} : Prop, {0}",
    "(fun (x : nat) {0} => {0}) 1 True", "let ({0}, _) := (True, 1) in {0}", "match (True, 1) with ({0}, _) => True end",
    "let '({0}, x) := (True, 1) in {0}",
)  # fmt: skip
OPEN = (
    "exfalso.", "cut False.", "assert False.", "absurd (1 = 1).", "refine (False_ind _ _).", "apply False_ind.",
    "apply @False_rect.", "eapply False_rec.", "refine _.", "refine ((fun H : {} => _) _).", "simple apply False_ind.",
    "elim (fun H : {} => H).", "destruct (fun H : {0} => H : {0}).", "destruct (O_S 0).", "case (n_Sn 0).", "elim (O_S 0).",
    "rapply False_ind.", "apply proj1 with False.", "apply (proj1 (B := False)).", "apply eq_trans with 77.", "refine ?[x].",
    "eapply (fun H : False => match H with end).", "unshelve eapply eq_trans.", "rewrite (False_ind (x = 7)).",
    "pose proof (False_ind (x = 7)) as ->.", "apply (absurd (x = 7)).", "discriminate (False_ind (1 = 2)).",
)  # fmt: skip
FOUND = (
    ("Goal 1 = 1.", 'all: { Notation "a + b" := 5.', "reflexivity. Qed.", "Lemma lie : 2 + 2 = 5. Proof. reflexivity. Qed."),
    ("Lemma k : 1 = 1. Proof.", "all: { Axiom a : 1 = 2.", "assert (1 = 2) by exact a."),
    ("Lemma lie : { le | le 3 2 }. Proof. exists (fun _ _ : nat => True); exact I. Qed.",),
    ("Lemma lie : exists2 le, le 3 2 & True. Proof. exists (fun _ _ : nat => True); exact I. Qed.",),
    ("Lemma lie : match (fun _ _ => True, 0) with (le, (0 | S _)) => le 3 2 end. Proof. exact I. Qed.",),
    ("Lemma l : forall x : nat, x = x -> x + 0 = x. Proof.", "intros x H%(@conj (1 = 2) (x = x))."),
    ("Lemma l : 1 = 1. Proof.", "idtac; casetype False."),
    ("Lemma l : 1 = 1. Proof.", "idtac; lapply (fun H : 1 = 2 => H)."),
    ("Lemma l : forall x : nat, x = x. intros x.", "rewrite (fun H : False => match H return x = 7 with end); [ easy | ]."),
    ("Definition double (n : nat) := n + n.", "Lemma l : forall d : nat -> nat, d 2 = 0 -> d 2 = 0. Proof.",
     "intros double H. assert (double 2 = 0) by (apply H)."),
    ("Require Import Lra.", "Lemma l : True. Proof.", "pose proof ClassicalDedekindReals.sig_not_dec as H."),
)  # fmt: skip
"""Chains that once held."""


def forgeries(count: int, seed: int) -> list[tuple[str, StepInContext]]:
    """Chains of the families in turn, each with its family. A recursive theorem may be what the problem has to be proved."""
    pick = random.Random(seed)
    found = []
    for texts in FOUND:
        *earlier, step = (f"```coq\n{text}\n```" for text in texts)
        found.append(("found", StepInContext(problem="", earlier=tuple(earlier), step=step)))
    for at in range(count):
        family = FAMILIES[at % len(FAMILIES)]
        *earlier, step = (f"```coq\n{text}\n```" for text in _texts(family, pick))
        problem = earlier.pop(0) if family == "unguarded" and pick.random() < 0.5 else ""
        found.append((family, StepInContext(problem=problem, earlier=tuple(earlier), step=step)))
    return found


def _texts(family: str, pick: random.Random) -> tuple[str, ...]:
    false, name, gap, is_first = (
        pick.choice(FALSE),
        pick.choice(GLOBAL),
        pick.choice(("", " ", "\n", "(* *)")),
        pick.random() < 0.5,
    )
    lie = f"Lemma lie : {false}. Proof."
    match family:
        case "glue":
            return lie, pick.choice(WRAPPED).format(f"do {pick.choice(NUMBERS)}{pick.choice(EVIL)}")
        case "admits":
            return lie, pick.choice(WRAPPED).format(pick.choice(EVIL))
        case "notations":
            notation = pick.choice(NOTATIONS)
            sign = notation[3]
            other = pick.choice((f'Notation "a {sign} b" := 5.', f'Infix "{sign}" := (fun _ _ => 5).'))
            begin = f"Fixpoint f (a b : nat) : nat := 5{gap}where {notation}." if is_first else other
            return begin, f"Theorem lie : 2 {sign} 2 = 5. Proof. reflexivity. Qed."
        case "second names":
            second = f"{pick.choice(('with', 'and', 'where'))} plus (a b : nat) {{struct a}} : nat := 5"
            first = f"Fixpoint f (a b : nat) {{struct a}} : nat := 1{gap}{second}."
            return first, "Theorem lie : plus 2 2 = 5. Proof. reflexivity. Qed."
        case "hidden names":
            hidden = f"{pick.choice(('transparent_abstract', 'abstract'))} (exact 5) using {name}."
            return "Lemma k : nat.", hidden, "Defined.", "Lemma after : 1 = 1. Proof. reflexivity. Qed."
        case "shadowing" if is_first:
            begin = pick.choice((f"Definition {name} := True.", f"Fixpoint {name} (n : nat) : nat := n."))
            return begin, "Lemma l : 1 = 1. Proof. reflexivity. Qed."
        case "shadowing":
            proof = "Proof. first [ now (exists (1 = 1)) | firstorder ]. Qed."
            return (f"Lemma lie : {pick.choice(SHADOWED).format(name)}. {proof}",)
        case "assumptions" if is_first:
            proof = "Proof. exact ClassicalDedekindReals.sig_not_dec. Qed."
            library = pick.choice(("Lra", "Psatz"))
            return f"Require Import {library}.", f"Lemma lie : forall P : Prop, {{~ ~ P}} + {{~ P}}. {proof}"
        case "assumptions":
            kind = pick.choice(
                ("Axiom", "Parameter", "Hypothesis", "Variable", "Conjecture", "Local Axiom", "Global Axiom")
            )
            return f"{kind} a : {false}.", f"{lie} exact a. Qed."
        case "unguarded":
            extra, arguments = pick.choice((("", "n"), (" (m := 3)", "n"), (" (m k : nat)", "n 0 0")))
            head = f"Fixpoint lie (n : nat){extra} {{struct n}} : {false}."
            return head, f"{pick.choice(('exact', 'apply', 'refine'))} (lie {arguments})."
        case _:
            tactic = pick.choice(OPEN).format(pick.choice(FALSE[:-1]))
            return "Lemma lie : forall x : nat, x = x + 0. Proof. intros x.", tactic
