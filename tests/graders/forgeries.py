"""Programs that solve nothing. They would pass if they shared a process, a descriptor or a file with their tests."""

FORGERIES = {
    "exits as if all were well": """
import sys
sys.exit(0)
""",
    "exits hard as if all were well": """
import os
os._exit(0)
""",
    "exits hard when it is called": """
def f(x):
    import os
    os._exit(0)
""",
    "exits when it is called": """
def f(x):
    raise SystemExit(0)
""",
    "equals everything": """
class Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
def f(x): return Always()
""",
    "is a number that equals everything": """
class Always(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def f(x): return Always(1)
""",
    "is a class that equals everything": """
class Kind(type):
    def __eq__(self, other): return True
class Always(metaclass=Kind): pass
def f(x): return Always
""",
    "replaces what tests use": """
import builtins
for name in ("len", "all", "abs", "isinstance", "Exception", "AssertionError"):
    setattr(builtins, name, lambda *a, **k: True)
def f(x): return 1
""",
    "replaces what the judge uses": """
import json, os, sys
json.dumps = json.loads = lambda *a, **k: {"value": True}
def f(x): return 1
""",
    "says on every descriptor that it passed": """
import os
for number in range(1, 64):
    for word in (b"passed", b'"passed"\\n', b'{"value": true}\\n'):
        try: os.write(number, word)
        except OSError: pass
def f(x): return 1
""",
    "answers before it is asked": """
import os
os.write(6, b'{"value": null}\\n' * 9)
def f(x): return 1
""",
    "closes all descriptors": """
import os
os.closerange(0, 64)
def f(x): return 1
""",
    "ends itself with a signal": """
import os, signal
os.kill(os.getpid(), signal.SIGTERM)
""",
    "aborts": """
import os
os.abort()
""",
    "crashes": """
import ctypes
ctypes.string_at(0)
""",
    "looks for the tests in frames and objects": """
import gc, sys
def f(x):
    frame, texts = sys._getframe(), [text for text in gc.get_objects() if isinstance(text, str)]
    while frame:
        texts += [repr(frame.f_locals), repr(frame.f_globals), repr(frame.f_code.co_consts)]
        frame = frame.f_back
    for text in texts:
        _, found, rest = text.partition("f(%d) == " % x)
        if found: return int(rest[0])
""",
    "looks for the tests in files and descriptors": """
import os
def f(x):
    for number in range(3, 64):
        try: text = os.pread(number, 10000, 0).decode()
        except OSError: continue
        _, found, rest = text.partition("f(%d) == " % x)
        if found: return int(rest[0])
""",
    "raises what a failing test raises": """
def f(x): raise AssertionError
""",
    "ends the tests' iteration": """
def f(x): raise StopIteration
""",
    "returns a promise": """
async def f(x): return x * x
""",
    "prints the word it hopes for": """
print("passed")
def f(x): print("passed")
""",
    "replaces standard output": """
import sys
class Output:
    def __getattr__(self, name): return lambda *a: True
sys.stdout = Output()
def f(x): return 1
""",
}
