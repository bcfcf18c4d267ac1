"""The verifier proof_server, with a stand-in for the server: what is sent, what answers mean, and servers that fail."""

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import EngineDied, InputError
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict
from pipeline.verifiers.proof_server import http
from pipeline.verifiers.proof_server.answers import BadAnswer, Checked, answer, request
from pipeline.verifiers.proof_server.lean import Question, question_of
from pipeline.verifiers.proof_server.verifier import ProofServer
from pipeline.verifiers.reading import NotRead
from pipeline.verifiers.registry import inputs_of, missing_for
from pipeline.verifiers.settings import ProofServerConfig
from tests.verifiers.lean_server import CLEAN, SORRY, VERSION, Judge, Server, core, error, listed, messages, serving

pytestmark = pytest.mark.slow

PROBLEM = "theorem t (n : Nat) : n + 0 = n := by"
STEP = StepInContext(problem=PROBLEM, earlier=(), step="rfl")
OPEN_GOAL = error("unsolved goals\nn : Nat\n⊢ n + 0 = n")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT_SECONDS", 0.001)


def lean(code: str) -> dict[str, Any]:
    """A Lean for these tests: `bad` fails, a proof ends with `rfl`, and the axiom closes an open one."""
    if found := re.search(r"\bbad\w*", code):
        return error(f"unknown identifier '{found[0]}'")
    ends = code.rstrip().endswith("exact GOAL _")
    if "rfl" in code:
        return error("no goals to be proved") if ends else CLEAN
    return CLEAN if ends else OPEN_GOAL


def asked(
    step: str,
    *earlier: str,
    problem: str = PROBLEM,
    judge: Judge = lean,
    seen: Callable[[Server], object] = id,
    **settings: Any,
) -> Finding:
    with serving(judge) as server:
        verifier = ProofServer(ProofServerConfig(url=server.url, **settings))
        found = verifier.verify(StepInContext(problem=problem, earlier=earlier, step=step))
        seen(server)
    return found


def question(step: str, *earlier: str, problem: str = PROBLEM, header: str = "") -> Question:
    found = question_of(StepInContext(problem=problem, earlier=earlier, step=step), header)
    assert found is not None
    return found


def test_texts_that_are_checked() -> None:
    def texts(found: Question) -> tuple[str, str, str | None]:
        return core(found.before), core(found.whole), found.open and core(found.open)

    found = question("simp -- c", "intro h\n  constructor", header="import Mathlib")
    proof = f"import Mathlib\n{PROBLEM}\n  intro h\n  constructor"
    end = "\n  exact GOAL _"
    assert texts(found) == (proof + end, f"{proof}\n  simp", f"{proof}\n  simp{end}")
    assert found.whole.replace(found.closing, "GOAL").split("\n")[1:] == [
        "axiom GOAL.{u} (α : Sort u) : α",
        *f"{PROBLEM}\n  intro h\n  constructor\n  simp\n#print axioms t\n#print axioms GOAL".split("\n"),
    ]
    command = question(
        "```lean\nexample : 1 = 1 := by\n  rfl\n```", problem="```lean4\nimport Mathlib\n```", header="import Mathlib"
    )
    assert texts(command) == ("import Mathlib", f"import Mathlib\ndef {command.names[0]} : 1 = 1 := by\n  rfl", None)
    for text in (f"{PROBLEM} sorry", PROBLEM.replace("by", "sorry"), f"{PROBLEM}\n  sorry\n"):
        assert core(question("rfl", problem=text).whole).split() == f"{PROBLEM} rfl".split()
    fenced = question("```lean\n    exact h\n```", problem=f"Show it.\n```lean\n{PROBLEM}\n```")
    assert str(texts(fenced)[2]).endswith("\n    exact h\n    exact GOAL _")
    assert (fenced.has_words, fenced.words_before) == (False, True)


def test_words_are_not_asked_about() -> None:
    for step in ("We see that it holds.", "Then x = 3.", ""):
        assert question_of(StepInContext(problem=PROBLEM, earlier=(), step=step), "") is None
    assert question_of(StepInContext(problem="What is 1 + 1?", earlier=(), step="have a look"), "") is None
    with pytest.raises(NotRead, match="step 1 is not read as Lean"):
        question("rfl", "First, we simplify.")


NOT_SENT = """
sorry ;; admit ;; exact sorryAx _ ;; native_decide ;; simp; stop ;; exact? ;; apply? ;; run_tac foo ;; simp⏎#eval 1
theorem u : 1 = 2 := by sorry ;; have h := Lean.ofReduceBool a b rfl ;; open Nat in simp ;; exact IO.rand ;; first | sorry | rfl
U axiom a : False ;; U set_option maxHeartbeats 0 ;; U macro "x" : tactic => `(tactic| skip) ;; U notation "False" => True
U unsafe def f := 1 ;; U @[implemented_by f] def g := 1 ;; U import Mathlib ;; U elab "x" : tactic => pure () ;; U #print u
U instance : Add Nat := f ;; U local infixl:65 " + " => HMul.hMul ;; U variable (h : False) ;; U end x⏎namespace y
U initialize x : Nat ← 1 ;; U inductive Fals ;; U opaque f : False ;; U decreasing_by rfl ;; U irreducible_def f : 1 = 1 := rfl
decide +native ;; simp (config := { native := true }) ;; bv_decide ;; exact by? ;; rfl⏎.open Nat in simp ;; exact h ..open Nat
observe h : 1 = 2 ;; exact s!"{h}" ;; rfl /- open ;; exact h /- /- -/ ;; unseal f in rfl ;; -- it is clear
theorem «u» : 1 = 1 := rfl ;; theorem u : 1 = 1 := rfl theorem v : 1 = 2 := by ;; rfl⏎  theorem v : 1 = 2 := by"""


@pytest.mark.parametrize("step", re.split(" ;; |\n", NOT_SENT.strip()))
def test_a_step_that_might_cheat_is_unknown_and_not_sent(step: str) -> None:
    step = step.replace("U ", "theorem u : 1 = 1 := rfl⏎").replace("⏎", "\n")
    for text in (step, f"```lean\n{step}\n```"):
        assert asked(text, seen=assert_unasked, judge=lambda _: CLEAN).verdict is StepVerdict.UNKNOWN
    after = asked("```lean\nrfl\n```", f"```lean\n{step}\n```", seen=assert_unasked, judge=lambda _: CLEAN)
    assert after.verdict is StepVerdict.UNKNOWN
    assert "step 1" in after.evidence


@pytest.mark.parametrize("word", ["sorry", "sorryAx _", "admit", "Lean.ofReduceBool a b rfl", "by native_decide"])
def test_no_lexer_finds_a_word_that_is_not_found_here(word: str) -> None:
    for glue in ("", "(1", "0x1", "0xab", "1e5", "_root_.", "h.1", "..", "λ", "x²", "→o", "‹", "_", "h ▸", "·", "$"):
        for step in (f"exact {glue}{word}", f"theorem u : 1 = 2 := {glue}{word}", f"rfl\n{glue}{word}"):
            with pytest.raises(NotRead, match="is not sent"):
                question(f"```lean\n{step}\n```")


def answering(said: dict[str, Any]) -> Judge:
    return lambda _: said


def assert_unasked(server: Server) -> None:
    assert server.asked == []


def test_verdicts() -> None:
    assert asked("rfl") == Finding(verdict=StepVerdict.HOLDS, evidence="Lean accepts: rfl", covers=Covers.WHOLE)
    still_open = asked("simp")
    assert (still_open.verdict, still_open.covers) == (StepVerdict.HOLDS, Covers.WHOLE)
    assert still_open.evidence == "Lean accepts, with a proof that is still open: simp"
    refuted = asked("```lean\nexact bad_name\n```")
    assert (refuted.verdict, refuted.covers) == (StepVerdict.REFUTED, Covers.WHOLE)
    assert refuted.evidence.endswith("unknown identifier 'bad_name'")
    assert asked("exfalso").verdict is StepVerdict.UNKNOWN
    # Without a fence the name may be a word.
    assert asked("exact bad_name").verdict is StepVerdict.UNKNOWN


def test_a_step_after_an_error_is_unknown() -> None:
    found = asked("rfl", "exact bad_name")
    assert found.verdict is StepVerdict.UNKNOWN
    assert "what stands before the step" in found.evidence


def test_words_around_a_step() -> None:
    step = "This fails:\n```lean\nexact bad\n```"
    assert asked(step).verdict is StepVerdict.UNKNOWN
    assert asked(step, ignore_words=True).verdict is StepVerdict.REFUTED
    assert asked("Done:\n```lean\nrfl\n```").covers is Covers.PART
    fenced = f"Show:\n```lean\n{PROBLEM}\n```"
    assert asked("```lean\nexact bad\n```", problem=fenced).verdict is StepVerdict.UNKNOWN
    assert asked("```lean\nexact bad\n```", problem=fenced, ignore_words=True).verdict is StepVerdict.REFUTED


def test_errors_that_refute_nothing() -> None:
    limits = (
        "(deterministic) timeout at `whnf`, maximum number of heartbeats",
        "maximum recursion depth",
        "INTERNAL PANIC",
    )
    for said in (*limits, "unsolved goals\n⊢ False", "unknown module prefix 'Mathlib'", "no goals to be proved"):
        found = asked("```lean\nnorm_num\n```", judge=lambda code: error(said) if "norm_num" in code else CLEAN)  # noqa: B023
        assert found.verdict is StepVerdict.UNKNOWN, said


def test_a_text_that_the_server_did_not_finish_is_unknown() -> None:
    for said in ({"error": "Lean REPL command timed out"}, {"response": {"message": "Unknown environment."}}):
        found = asked("rfl", judge=answering(said))
        assert found.verdict is StepVerdict.UNKNOWN
        assert found.evidence.startswith("Lean does not accept what stands before the step: ")


def test_a_hidden_sorry_proves_nothing() -> None:
    for said in (messages(sorries=1), messages(("warning", "declaration uses 'sorry'")), SORRY):
        for step in ("rfl", "theorem u : 1 = 1 := rfl"):
            found = asked(step, judge=answering(said))
            assert found.verdict is StepVerdict.UNKNOWN
            assert found.evidence == "something is not proved, though no step says sorry"


def test_what_is_proved_rests_on_known_axioms_alone() -> None:
    problem = f"namespace N\naxiom given : 1 = 2\n{PROBLEM}"
    command = "```lean\nexample : 1 = 1 := rfl\ntheorem t : 1 = 1 := rfl\n```"
    listings: tuple[list[str], ...] = ([], ["propext", "Classical.choice", "Quot.sound"], ["propext", "N.given"])
    unknown = (["propext", each] for each in ("sorryAx", "Lean.ofReduceBool", "t._native.ax_1", "ungiven", "givena"))
    for verdict, listing in (*(("holds", each) for each in listings), *(("unknown", each) for each in unknown)):
        for step in ("rfl", "simp", command):
            found = asked(step, problem=problem, judge=lambda code: lean(code) | {"axioms": {"t": listing}})  # noqa: B023
            assert found.verdict.value == verdict, (step, listing)


FREE, CLOSED = "'t' does not depend on any axioms", listed("GOAL", "GOAL")


def test_an_odd_answer_about_axioms_is_no_verdict() -> None:
    odd = [[], [FREE], [CLOSED], [FREE, FREE, CLOSED], [CLOSED, FREE], [listed("u"), CLOSED], [FREE, CLOSED, FREE]]
    odd += [[listed("t", "GOAL"), CLOSED], [FREE, listed("GOAL")], [FREE.upper(), CLOSED], [f"{FREE} but one", CLOSED]]
    for said in ([FREE, CLOSED], *odd):
        found = asked("rfl", judge=lambda code: lean(code) | {"listed": said})  # noqa: B023
        assert found.verdict is (StepVerdict.UNKNOWN if said in odd else StepVerdict.HOLDS), said


def test_a_rejection_counts_where_lean_has_read_to_the_end() -> None:
    def unread(code: str) -> dict[str, Any]:
        return lean(code) | ({"listed": [FREE]} if "bad" in code else {})

    for problem, step in ((PROBLEM, "exact bad"), (f"{PROBLEM} rfl", "theorem u : bad")):
        step = f"```lean\n{step}\n```"
        assert asked(step, problem=problem).verdict is StepVerdict.REFUTED
        assert asked(step, problem=problem, judge=unread).verdict is StepVerdict.UNKNOWN
    for judge in ({"t ": CLEAN, "u ": error("Unknown constant `u`")}, {"t ": CLEAN, "u ": {"error": "timed out"}}):
        said = asked("```lean\ntheorem u : T := 1\n```", judge=lambda code: judge[code.split("theorem ")[-1][:2]])  # noqa: B023
        assert said.verdict is StepVerdict.UNKNOWN


def test_comments_and_local_definitions_make_a_part_of_a_step() -> None:
    assert (asked("simp", "let two := 3").covers, asked("simp", "simp").covers) == (Covers.PART, Covers.WHOLE)
    assert asked("simp", "obtain ⟨i⟩ : ∃ i : Add Nat, True := that").covers is Covers.PART
    for step in ("rfl -- sorry, 1 = 2", "rfl /- so 1 = 2 by axiom -/"):
        assert asked(step) == Finding(verdict=StepVerdict.HOLDS, evidence=f"Lean accepts: {step}", covers=Covers.PART)
    assert asked("```lean\n-- It is clear.\nexact bad\n```").verdict is StepVerdict.REFUTED


def test_the_request() -> None:
    def seen(server: Server) -> None:
        (body,) = server.asked
        assert body["timeout"] == 7
        assert [each["id"] for each in body["snippets"]] == ["0", "1", "2"]
        close = "\n  exact GOAL _"
        assert [*map(core, server.codes)] == [PROBLEM + text for text in ("\n  rfl", close, f"\n  rfl{close}")]

    asked("rfl", text_seconds=7, seen=seen)
    assert json.loads(request(["a"], 3)) == {"snippets": [{"id": "0", "code": "a"}], "timeout": 3, "reuse": True}


def test_long_texts_are_not_asked_about() -> None:
    assert asked("rfl", most_characters=2) == UNKNOWN
    assert asked("rfl", "simp " * 50_000) == UNKNOWN


def test_the_version_of_lean_is_a_part_of_the_check() -> None:
    with serving(lean) as server:
        settings = ProofServerConfig(url=server.url)
        assert inputs_of(settings) == {"lean_version": "4.21.0"}
        server.replies = [(200, json.dumps({"results": [{"id": "0", **error("unknown constant")}]}).encode())]
        with pytest.raises(InputError, match=r"says no version of Lean: unknown constant"):
            inputs_of(settings)
    with pytest.raises(InputError, match=rf"proof server {server.url}: it does not answer: .*refused.*\(4 tries\)"):
        inputs_of(settings)


def test_without_a_url_it_is_left_out() -> None:
    assert missing_for(ProofServerConfig()).startswith("needs verifier=proof_server verifier.url=http://HOST:PORT")
    with serving(lambda _: VERSION) as server:
        assert missing_for(ProofServerConfig(url=server.url)) == ""
    assert missing_for(ProofServerConfig(url=server.url)).startswith(
        f"needs its server: proof server {server.url}: it does"
    )
    wrong = ("localhost:8000", "file:///etc/passwd", "ftp://host", "http://", "http://u:key@host", "http://h/?a=1")
    for url in (*wrong, "http:/h"):
        with pytest.raises(ValueError, match=r"verifier\.url"):
            ProofServerConfig(url=url)


@pytest.mark.parametrize(
    ("reply", "said", "tries"),
    [
        *(((200, text), "it is no JSON", 1) for text in (b"<html>", b"[" * 100_000)),
        *(((200, b'{"results": []}'), "not those of the texts", 1), ((200, b"{}"), "no list of results", 1)),
        ((200, b'{"results": [{"id": "0"}, {"id": "1"}, {"id": "1"}]}'), "not those of the texts", 1),
        *(((404, b"not here"), "status 404: not here", 1), ((302, b""), "status 302", 1)),
        *(((status, b"busy"), rf"status {status}: busy \(4 tries\)", 4) for status in (503, 429)),
    ],
)
def test_a_server_that_fails_is_an_error_and_no_verdict(reply: tuple[int, bytes], said: str, tries: int) -> None:
    with serving(lean) as server:
        server.replies = [reply] * 9
        with pytest.raises(EngineDied, match=rf"proof server {server.url}.*{said}"):
            ProofServer(ProofServerConfig(url=server.url)).verify(STEP)
        assert len(server.asked) == tries


def test_a_server_that_is_busy_for_a_while_is_asked_again() -> None:
    with serving(lean) as server:
        server.replies = [(503, b""), (429, b"")]
        found = ProofServer(ProofServerConfig(url=server.url)).verify(STEP)
    assert found.verdict is StepVerdict.HOLDS


def test_too_much_and_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_BYTES", 1_000)
    with serving(lambda _: error("x" * 2_000)) as server, pytest.raises(EngineDied, match="it sent more than 0 MiB"):
        http.post(server.url, "/api/check", request(["rfl"], 1), 5.0)
    given_up = threading.Event()
    with serving(lambda _: CLEAN if given_up.wait(60) else SORRY) as server:
        with pytest.raises(EngineDied, match=r"it did not answer within 0\.05 s \(4 tries\)"):
            http.post(server.url, "/api/check", request(["rfl"], 1), 0.05)
        given_up.set()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(1))
    with pytest.raises(EngineDied, match=r"it did not answer within 0\.02 s"):
        http.post("http://localhost:1", "/api/check", b"{}", 0.02)


OK, CHUNKED = b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "again"),
    [
        *((b"", b"H"), (OK + b"X: ", b"a"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        *((OK + b"Content-Length: 9999\r\n\r\n", b"a"), (OK + CHUNKED, b"0"), (OK + CHUNKED + b"0\r\n", b"X: y\r\n")),
        (OK + b"Connection: close\r\n" + CHUNKED, b"0"),
    ],
)
def test_the_time_limit_is_one_of_the_whole_exchange(first: bytes, again: bytes) -> None:
    def drip() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with contextlib.suppress(OSError), connection:
                    connection.sendall(first)
                    for _ in range(999):
                        connection.sendall(again)
                        time.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, daemon=True).start()
        with pytest.raises(EngineDied, match=r"it did not answer within 0\.05 s"):
            http.post(f"http://127.0.0.1:{listening.getsockname()[1]}", "/api/check", b"{}", 0.05)


def test_answers() -> None:
    def read(*results: object) -> list[Checked]:
        return answer(json.dumps({"results": list(results)}).encode(), len(results))

    assert read({"id": "1", **CLEAN}, {"id": "0", **error("no")}) == [Checked(errors=("no",)), Checked()]
    assert read({"id": "0", **SORRY}) == [Checked(infos=("declaration uses 'sorry'",), uses_sorry=True)]
    listings: tuple[object, ...] = ([{"severity": "error"}], {"a": 1}, [{"severity": "fatal", "data": "x"}])
    responses: tuple[object, ...] = ({}, {"messages": []}, {"env": "0"}, {"env": 0, "sorries": 3}, None, [], "clean")
    for response in (*responses, *({"env": 0, "messages": each} for each in listings)):
        with pytest.raises(BadAnswer):
            read({"id": "0", "response": response})


KEYS = st.sampled_from(["results", "id", "response", "messages", "env", "error", "severity", "data"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(json_values | st.binary(max_size=40))
def test_any_answer_is_read_or_refused(said: Any) -> None:
    content = said if isinstance(said, bytes) else json.dumps(said).encode()
    with contextlib.suppress(BadAnswer):
        assert all(isinstance(each, Checked) for each in answer(content, 1))
