"""Programs that try to leave the sandbox, to outlive their run, or to pass without solving the problem."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pipeline.core.records import Verdict
from pipeline.graders.code.checker import CodeChecker
from pipeline.graders.code.runs import Descriptor
from tests.graders.conftest import HAS_LANDLOCK, keeper_of
from tests.graders.forgeries import FORGERIES

pytestmark = pytest.mark.slow

SQUARE = "assert f(2) == 4\nassert f(3) == 9"
SECRET = "d41d8cd98f"
PRINTS_SECRET = json.dumps({"inputs": ["1"], "outputs": [SECRET]})
CALLS = json.dumps({"fn_name": "f", "inputs": [[1]], "outputs": [SECRET]})

Maker = Callable[..., CodeChecker]


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("gold", [SQUARE, CALLS, PRINTS_SECRET], ids=["assertions", "calls", "streams"])
def test_a_forged_success_is_incorrect(code_checker: CodeChecker, gold: str, name: str) -> None:
    assert code_checker.grade_answer((gold,), FORGERIES[name]).verdict is Verdict.INCORRECT


SEARCH = """
import gc
def found(word):
    for item in gc.get_objects():
        try:
            if word in repr(item): return True
        except Exception:
            pass
    return False
own = ["".join(["my", "own"])]
assert found("".join(["my", "own"]))
secret = lambda: "".join(["d41d8", "cd98f"])
"""


@pytest.mark.parametrize(
    ("gold", "program"),
    [
        (PRINTS_SECRET, "print(secret() if {condition} else 0)"),
        (CALLS, "def f(x): return secret() if {condition} else 0"),
        (f"assert f(1) == {SECRET!r}", "def f(x): return secret() if {condition} else 0"),
    ],
    ids=["streams", "calls", "assertions"],
)
def test_what_is_expected_is_not_in_the_memory_of_a_program(code_checker: CodeChecker, gold: str, program: str) -> None:
    """The search works, because it finds a text of the program itself. With the condition `True` the same program passes."""
    searches = SEARCH + program.format(condition="found(secret())")
    assert code_checker.grade_answer((gold,), searches).verdict is Verdict.INCORRECT
    knows = SEARCH + program.format(condition="True")
    assert code_checker.grade_answer((gold,), knows).verdict is Verdict.CORRECT


def test_a_function_of_the_tests_leads_nowhere(code_checker: CodeChecker) -> None:
    gold = "assert f(lambda v: v + 1, 3) == 4"
    for way in (
        "g.__globals__",
        "g._peer.ask('get', g, '__globals__')",
        "g._peer.ask('call', g._peer.ask('get', g, 'func'))",
    ):
        program = f"def f(g, x):\n    {way}\n    return 4"
        assert code_checker.grade_answer((gold,), program).verdict is Verdict.INCORRECT
    assert code_checker.grade_answer((gold,), "def f(g, x):\n    return g(x)").verdict is Verdict.CORRECT


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def prints(checker: CodeChecker, program: str, wanted: str) -> bool:
    """Whether the program prints the wanted text and ends well."""
    gold = json.dumps({"inputs": [""], "outputs": [wanted]})
    return checker.grade_answer((gold,), program).verdict is Verdict.CORRECT


def shown(code: str) -> str:
    """A program that prints `done`, or the name of the exception that the code raises."""
    body = textwrap.indent(code, "    ")
    return (
        f"import os, socket\ntry:\n{body}\n    print('done')\nexcept BaseException as e:\n    print(type(e).__name__)"
    )


def test_no_network(code_checker: CodeChecker, listener: socket.socket) -> None:
    address = listener.getsockname()
    assert prints(code_checker, shown("pass"), "done")
    assert prints(code_checker, shown(f"socket.create_connection({address!r}, 1)"), "PermissionError")
    assert prints(
        code_checker,
        shown(f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{address[1]}')"),
        "URLError",
    )
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_no_processes(code_checker: CodeChecker) -> None:
    attempts = [
        "os.fork()",
        "os.system('true') and os.fork()",
        "import subprocess\nsubprocess.run(['true'])",
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
        "os.kill(os.getppid(), 9)",
    ]
    for attempt in attempts:
        assert prints(code_checker, shown(attempt), "PermissionError"), attempt
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        break\nprint(1)"
    assert prints(code_checker, bomb, "1")


def test_no_files_but_its_own(code_checker: CodeChecker, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    attempts = [f"open({str(secret)!r}, 'w')", f"open({str(tmp_path / 'new')!r}, 'w')", f"os.remove({str(secret)!r})"]
    if HAS_LANDLOCK:
        attempts += [f"open({str(secret)!r})", "open('/etc/passwd')", "open('/proc/self/environ')", "os.listdir('/')"]
    for attempt in attempts:
        assert prints(code_checker, shown(attempt), "PermissionError"), attempt
    assert secret.read_text() == "secret"
    assert prints(code_checker, "import os\nprint(len(os.environ), os.listdir('.'))", "0 []")


HELD = """
import os
def held():
    found = []
    for number in range(64):
        try: os.fstat(number)
        except OSError: continue
        found.append(number)
    return found
"""


def test_no_descriptors_but_its_own(own_checker: Maker, tmp_path: Path) -> None:
    """The standard streams, and the two ends of pipes to the tests that call a function of it."""
    with (tmp_path / "foreign").open("w") as foreign:
        os.set_inheritable(foreign.fileno(), True)
        checker = own_checker()
        wire = [Descriptor.READING.value, Descriptor.WRITING.value]
        for turn in range(2):
            program = f"{HELD}# {turn}\n"
            assert prints(checker, f"{program}print(held())", "[0, 1, 2]")
            gold = f"assert held() == {[0, 1, 2, *wire]}"
            assert checker.grade_answer((gold,), program).verdict is Verdict.CORRECT


def test_its_own_files_are_removed(own_checker: Maker, temporary: Path) -> None:
    checker = own_checker()
    for end in ("print(1)", "os._exit(1)", "while True: pass"):
        checker.grade_answer((PRINTS_SECRET,), f"import os\nopen('a', 'w').write('x')\n{end}")
        (folder,) = temporary.iterdir()
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nwhile True: sys.stdout.write('x' * 2**16)",
        "x = []\nwhile True: x.append(' ' * 2**20)",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        "import threading\nthreading.stack_size(2**15)\nwhile True:\n"
        "    try: threading.Thread(target=threading.Event().wait).start()\n    except RuntimeError: pass",
        "n = 0\nwhile True:\n    n += 1\n    open(str(n), 'w').write('x' * 2**16)",
        "f = open('a', 'w')\nwhile True:\n    f.write('x' * 2**16)\n    f.flush()",
        "x = []\nwhile True: x.append(open('/dev/null'))",
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        "10**10**8",
        "'a' * 30 and __import__('re').match('(a+)+b', 'a' * 40)",
    ],
    ids=[
        "output",
        "memory",
        "threads",
        "small threads",
        "files",
        "file",
        "descriptors",
        "processor",
        "long call",
        "regex",
    ],
)
def test_what_never_stops_is_stopped(own_checker: Maker, temporary: Path, program: str) -> None:
    checker = own_checker(deadline_seconds=30.0, memory_mib=2048)
    assert checker.grade_answer((PRINTS_SECRET,), program).verdict is Verdict.INCORRECT
    assert keeper_of(checker).children(recursive=True) == []
    (folder,) = temporary.iterdir()
    assert list(folder.iterdir()) == []


def test_threads_left_behind_end_with_their_program(own_checker: Maker) -> None:
    checker = own_checker()
    left = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    assert prints(checker, f"{left}print(1)", "1")
    assert checker.grade_answer((SQUARE,), f"{left}def f(x): return x * x").verdict is Verdict.CORRECT
    assert keeper_of(checker).children(recursive=True) == []


def test_one_run_reports_the_next_nothing(code_checker: CodeChecker) -> None:
    writes = "import builtins, json, os, sys\nbuiltins.mark = json.mark = sys.mark = 1\nopen('mark', 'w')\nprint(1)"
    reads = "import builtins, json, os, sys\nprint([hasattr(m, 'mark') for m in (builtins, json, sys)], os.path.exists('mark'))"
    assert prints(code_checker, writes, "1")
    assert prints(code_checker, reads, "[False, False, False] False")


def test_a_set_has_the_same_order_in_every_run(own_checker: Maker) -> None:
    program = "import sys\nprint(sys.flags.hash_randomization, hash('a') == {})"
    seen = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    for _ in range(2):
        assert prints(own_checker(), program.format(seen.stdout.strip()), "0 True")


def test_many_hostile_programs_leave_nothing(own_checker: Maker, temporary: Path) -> None:
    checker = own_checker(processes=2)
    for number in range(8):
        for program in FORGERIES.values():
            checker.grade_answer((SQUARE,), f"{program}\n# {number}")
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    checker.close()
    after = {process.pid for process in psutil.Process().children(recursive=True)}
    assert len(before - after) == 1
    assert list(temporary.iterdir()) == []
    assert not list(Path(tempfile.gettempdir()).glob("stepvalue-code-*"))
