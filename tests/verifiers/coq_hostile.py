"""Steps of Coq that would have a careless reader accept what is false, write files, load code, or never end."""

from collections.abc import Iterator, Mapping

from pipeline.verifiers.base import StepInContext

PROBLEM = "Theorem target : 1 + 1 = 3."
"""Nothing may prove it."""
PROVABLE = "Theorem target : 1 + 1 = 2."
CANARY = "/tmp/stepvalue_coq_canary"
"""No step may make it."""

GIVEN_AWAY = (
    "Axiom lie : 1 + 1 = 3.", "Axioms lie : 1 + 1 = 3.", "Parameter lie : 1 + 1 = 3.",
    "Parameters lie other : 1 + 1 = 3.", "Hypothesis lie : 1 + 1 = 3.", "Variable lie : 1 + 1 = 3.",
    "Variables (lie : 1 + 1 = 3).", "Conjecture lie : 1 + 1 = 3.", "Context (lie : 1 + 1 = 3).",
    "Local Axiom lie : 1 + 1 = 3.", "Global Parameter lie : 1 + 1 = 3.", "Lemma lie : 1 + 1 = 3. Admitted.",
    "Lemma lie : 1 + 1 = 3. Proof. admit. Admitted.", "Section S. Variable lie : 1 + 1 = 3. End S.",
    "Module M. Axiom lie : 1 + 1 = 3. End M. Import M.",
    "Module Type T. Parameter lie : 1 + 1 = 3. End T. Declare Module N : T.", "#[local] Axiom lie : 1 + 1 = 3.",
    "#[bypass_check(guard)] Fixpoint lie (n : nat) : 1 + 1 = 3 := lie n.", "Unset Guard Checking.",
    "Unset Universe Checking.", "Unset Positivity Checking.", "Set Bypass Guard.", "Primitive lie := #int63_add.",
    "Register lie as core.False.type.", "Declare Instance lie : 1 + 1 = 3.", "Instance lie : 1 + 1 = 3. Admitted.",
    "Program Definition lie : 1 + 1 = 3 := _. Admit Obligations.", "Obligation Tactic := admit.",
    "Polymorphic Axiom lie : 1 + 1 = 3.", "Require Import Coq.Logic.SetIsType.",
    "Require Import Coq.Numbers.Cyclic.Int63.Int63.", "From Elsewhere Require Import Lies.", "Require Import lies.",
    "Abort.", "Abort All.", "Reset target.", "Restart.", "Undo.", "Back 1.", "BackTo 1.",
)  # fmt: skip
"""After each of these, a proof means nothing."""

RENAMED = (
    'Notation "1 + 1 = 3" := True.', 'Notation "x = y" := (x <> y).', 'Infix "+" := mult.',
    'Reserved Notation "x = y".', "Open Scope bool_scope.", "Close Scope nat_scope.", "Delimit Scope nat_scope with Z.",
    "Bind Scope nat_scope with bool.", "Declare Scope s.", "Arguments plus _ _ /.", "Coercion f : nat >-> bool.",
    "Canonical Structure c := d.", "Inductive False : Prop := lie.",
    "Inductive eq : nat -> nat -> Prop := lie : eq 2 3.", "Inductive le : nat -> nat -> Prop := lie : le 3 2.",
    "Record nat := { lie : bool }.", "Class True := { lie : 1 = 1 }.", "Definition True := False.",
    "Definition False := True.", "Definition nat := bool.", "Definition plus (a b : nat) := 3.",
    "Definition not (P : Prop) := P.", "Definition plus_n_O := I.", "Fixpoint plus (a b : nat) : nat := 3.",
    "Lemma eq_refl : True.", "Lemma helper : True with False : True.", "Let False := True.",
    "Ltac discriminate := idtac.", 'Tactic Notation "prove" := admit.', "Ltac2 f () := ().", "Hint Resolve lie.",
    "Hint Extern 0 => admit.", "Opaque plus.", "Transparent plus.", "Require Import QArith.", "Require Import Reals.",
    "Require Import List.", "From Coq Require Import ZArith.", "Set Implicit Arguments.", "Unset Printing Notations.",
    "Import Nat.", "Export Nat.", "Implicit Types n : bool.", "Generalizable All Variables.",
    "Scheme Equality for nat.", "Existing Instance lie.", 'Add LoadPath "/tmp" as Lies.', "Create HintDb core.",
    "Function f (n : nat) {measure n} := n.", "Derive p SuchThat (1 + 1 = 3) As lie.",
    "Lemma bad : (forall False : Prop, False).", "Lemma bad : forall (nat : Type) (a b : nat), a = b.",
)  # fmt: skip
"""After each of these, a sentence may mean something else."""

ACTIONS = (
    f'Redirect "{CANARY}" Print nat.', f'Print Universes "{CANARY}".', f'Extraction "{CANARY}" plus.',
    "Recursive Extraction plus.", f'Cd "{CANARY}".', 'Cd "/tmp".', "Pwd.", f'Load "{CANARY}".',
    'Load Verbose "/etc/passwd".', 'Declare ML Module "ltac_plugin".', 'Add ML Path "/tmp".', "Drop.", "Quit.",
    f'Dump Universes "{CANARY}".', f'Separate Extraction "{CANARY}".', "Set Debug.", 'Set Warnings "+all".',
    'Set Extraction Output Directory "/tmp".', "Set NativeCompute Profiling.",
    f'Set NativeCompute Profile Filename "{CANARY}".', "Time exact I.", "Timeout 1 exact I.", "Fail exact I.",
    "Instructions exact I.", "Inspect 100.", "Comments.", "Optimize Heap.", 'Locate File "nat.v".', "Test Debug.",
    'Remove LoadPath "/tmp".', "Debug On.", "Profile.",
)  # fmt: skip
"""Commands that do something, which never get to Coq."""

TACTICS = (
    "admit.", "give_up.", "native_compute.", "native_compute; reflexivity.", "exact_no_check (eq_refl 2).",
    "vm_cast_no_check (eq_refl 2).", "native_cast_no_check (eq_refl 2).", "change_no_check True.",
    "convert_concl_no_check True.", "all: admit.", "1: admit.", "(admit).", "try admit.",
    "first [ admit | reflexivity ].", "idtac; admit.", "exact ltac:(admit).", "refine (let x := ltac:(give_up) in x).",
    "fix lie 1.", "cofix lie.", "exact ((fix lie (n : nat) : 1 + 1 = 3 := lie n) 0).", "timeout 1 idtac.",
    "time idtac.", "pose (False := True).", "set (nat := bool).", 'idtac "<prompt>target < 99 |target| 0 < </prompt>".',
    'fail 0 "<prompt>target < 99 |target| 0 < </prompt>".', 'try (idtac "<prompt>Coq < 99 || 0 < </prompt>").',
    "abstract exact I.", "exact I.-exact I.", "exact I.}exact I.", "exact I.(* *)exact I.", "idtac.admit.",
    "idtac (* .", 'idtac "', "idtac", "idtac ...", "idtac .. .", "idtac\u00a0.", "idtac.\u2003admit.",
    "idtac.\x0cadmit.", "idtac.\u2028admit.", "idtac \x00 .", "idtac \ud800.", "```coq\nidtac.",
    "(* ```coq\nadmit.\n``` *)",
)  # fmt: skip
"""None of these steps proves anything, and none is refuted for what it is."""

STATED = (
    "cut (1 + 1 = 3); [ discriminate | ].", "assert (H : 1 + 1 = 4). 2: discriminate.",
    "assert (H : 1 + 1 = 4); [ | discriminate ].", "enough (H : 1 + 1 = 4) by discriminate.",
    "assert (1 + 1 = 4). shelve.", "assert (1 + 1 = 4). 2: shelve.", "cut False. - intros []. - idtac.",
    "cut False. - intros [].", "cut False. { intros []. }", "assert (H : False). 2: { destruct H. }",
    "replace (1 + 1) with 3. reflexivity.", "epose proof (_ : False) as H. destruct H.",
    "evar (x : False). destruct x.", "eapply (fun (x : False) (_ : x = x) => False_ind _ x).",
    "eassert (H : False). 2: destruct H.", "unshelve eapply (fun (x : False) (_ : x = x) => False_ind _ x).", "shelve.",
    "all: shelve.", "transitivity 3. 2: reflexivity.", "apply (eq_trans (y := 3)). 2: reflexivity. assert False.",
    "assert (1 + 1 = 3).", "assert (lie : 1 + 1 = 3).", "enough (1 + 1 = 3).", "cut (1 + 1 = 3).", "exfalso.",
    "elimtype False.", "replace 3 with 2.", "transitivity 2.", "absurd (1 = 1).", "intros; assert False.",
    "idtac; [ assert (lie : 1 = 3) ].", "repeat idtac; exfalso.",
)  # fmt: skip
"""Tactics that Coq accepts, and that only state a goal."""

LOOPS = (
    "repeat (pose 1).",
    "do 1000000000 idtac.",
    "let rec f := f in f.",
    "repeat (assert_succeeds idtac; pose proof I).",
    "compute in *; let x := eval compute in (Nat.pow 2 1000000) in idtac.",
    "let x := eval vm_compute in (Nat.pow 2 60) in pose x.",
    "exact (eq_refl (Nat.pow 10 12)).",
)
"""Steps that would never end, or fill the memory."""


def hostile() -> Mapping[str, StepInContext]:
    """Steps of which none may have a verdict, by what they are."""
    return dict(_hostile())


def _hostile() -> Iterator[tuple[str, StepInContext]]:
    for text in (*GIVEN_AWAY, *RENAMED, *ACTIONS):
        yield f"itself: {text}", StepInContext(problem="", earlier=(), step=f"```coq\n{text}\n```")
        lemma = "Lemma after : 1 + 1 = 3. Proof. exact lie. Qed."
        yield (
            f"after: {text}",
            StepInContext(problem="", earlier=(f"```coq\n{text}\n```",), step=f"```coq\n{lemma}\n```"),
        )
        yield (
            f"in one step: {text}",
            StepInContext(problem="", earlier=(), step=f"```coq\n{text} Lemma a : True. exact I. Qed.\n```"),
        )
    for text in STATED:
        yield f"states: {text}", StepInContext(problem=PROBLEM, earlier=("Proof.",), step=f"```coq\n{text}\n```")
    for text in TACTICS:
        step = text if text.startswith(("```", "(* ```")) else f"```coq\n{text}\n```"
        yield f"tactic: {text!a}", StepInContext(problem=PROBLEM, earlier=("Proof.",), step=step)
        yield (
            f"proof after: {text!a}",
            StepInContext(problem=PROBLEM, earlier=("Proof.", step), step="```coq\nQed.\n```"),
        )
