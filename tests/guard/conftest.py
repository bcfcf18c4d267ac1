"""What the tests of the guard share."""

from collections.abc import Iterator

import pytest

from tests.guard.doors import Doors, opened


@pytest.fixture(scope="session")
def doors() -> Iterator[Doors]:
    """One Ray head for all runs of this process."""
    with opened() as found:
        yield found
