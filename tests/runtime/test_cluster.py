"""Joining a Ray cluster."""

import subprocess
import sys
import textwrap

from tests.conftest import ROOT

ADDRESS = "127.0.0.1:6379"


def join(body: str) -> "subprocess.CompletedProcess[str]":
    """A process of its own that does `body` while it joins a cluster."""
    block = textwrap.indent(textwrap.dedent(body), "    ")
    code = f"import os\nfrom pipeline.runtime.cluster import _joining\nwith _joining({ADDRESS!r}):\n{block}"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_process_that_ray_ends_reports_what_ray_wrote() -> None:
    ended = join(r"""
        os.write(2, b"[E] Failed to register worker to Raylet: \x1b[31mEnd of file\n")
        os._exit(1)
    """)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"stepvalue: this command was ended while it joined the Ray cluster at {ADDRESS}")
    assert "Failed to register worker to Raylet" in line
    assert line.isprintable()
    assert "start the same command again" in line


def test_a_silent_end_is_reported_too() -> None:
    assert "Ray wrote: nothing" in join("os._exit(1)").stderr


def test_what_ray_writes_before_it_is_in_or_refused_is_kept_away() -> None:
    assert join(r"os.write(2, b'one retry\n')").stderr == ""
    refused = join(r"os.write(2, b'one retry\n'); raise ConnectionError('no')")
    assert refused.stderr.count("ConnectionError") == 1
    assert "one retry" not in refused.stderr
    assert "was ended while" not in refused.stderr
