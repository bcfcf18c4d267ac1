"""What the roles of the confined processes share: their descriptors, what they are given, and what they say at their ends."""

import builtins
import json
import os
import sys
from enum import IntEnum
from types import ModuleType
from typing import Any, NoReturn

PROGRAM_FILE = "program.py"


class Descriptor(IntEnum):
    """The descriptors of a process of `child`, except the standard streams."""

    CONTENT = 3
    READY = 4
    READING = 5
    WRITING = 6
    STATEMENT = 7
    WIRE = 8
    """Of `thread_limit`. It is closed before a role begins."""


def read_content() -> dict[str, Any]:
    with open(Descriptor.CONTENT, "rb") as stream:
        stream.seek(0)
        content: dict[str, Any] = json.load(stream)
    return content


def new_module(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    sys.argv[:] = [PROGRAM_FILE]
    return module


def compiled(source: str) -> Any:
    return compile(source, PROGRAM_FILE, "exec", dont_inherit=True)


def announce() -> None:
    """Report that this process is confined and has begun. From here on, every failure is caused by the content that it runs."""
    os.write(Descriptor.READY, b"1")
    os.close(Descriptor.READY)


def state(statement: str, code: int = 0) -> NoReturn:
    os.write(Descriptor.STATEMENT, statement.encode())
    os._exit(code)
