"""What the tests of the guard share."""

from collections.abc import Iterator

import pytest

from tests.guard.terminal import Terminal, opened


@pytest.fixture(scope="session")
def terminal() -> Iterator[Terminal]:
    """One Ray head for all runs of this process."""
    with opened() as found:
        yield found
