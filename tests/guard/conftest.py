"""What the tests of the guard share."""

import pytest

from tests.guard.terminal import Terminal


@pytest.fixture(scope="session")
def terminal() -> Terminal:
    return Terminal()
