"""A kernel is stored and comes back bit for bit; one of another version is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.table import TABLES
from pipeline.estimators.pooled.grid import POINTS
from pipeline.estimators.pooled.kernel import PRIOR, PRIOR_VERSION, Kernel
from pipeline.estimators.pooled.learning import TABLE, kernel_of, kernel_table
from pipeline.estimators.pooled.reproduction import ANGLES, KINDS


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40))
def test_a_kernel_comes_back_as_it_went_in(seed: int, chains: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = Kernel(
        start=rng.exponential(size=POINTS),
        steps=rng.exponential(size=(POINTS, POINTS)),
        last=rng.exponential(size=(2, POINTS)),
        reproduced=rng.exponential(size=(KINDS, ANGLES)),
        chains=chains,
    )
    table = kernel_table(kernel)
    assert table.schema.equals(TABLES[TABLE].schema)
    back = kernel_of(table)
    assert back.chains == chains
    for name in ("start", "steps", "last"):
        assert np.array_equal(getattr(back, name), getattr(kernel, name))


@pytest.mark.parametrize(
    "change", [{"prior": PRIOR_VERSION + 1}, {"start": [0.5]}, {"steps": [[1.0]]}, {"last": [[0.0]]}]
)
def test_a_kernel_of_another_version_is_refused(change: dict[str, object]) -> None:
    row = kernel_table(PRIOR).to_pylist()[0] | change
    with pytest.raises(ValueError, match="another version"):
        kernel_of(pa.Table.from_pylist([row], schema=TABLES[TABLE].schema))
