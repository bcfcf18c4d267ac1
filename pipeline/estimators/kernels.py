"""What a run has learnt of how values move, as a table of one row, and back. Pure."""

import numpy as np
import pyarrow as pa

from pipeline.core.schemas import SCHEMAS
from pipeline.estimators.grid import POINTS
from pipeline.estimators.kernel import PRIOR_VERSION, Kernel

TABLE = "kernels"


def kernel_table(kernel: Kernel) -> pa.Table:
    """One row: the expected counts, and which prior they stand beside."""
    row = {
        "prior": PRIOR_VERSION,
        "chains": kernel.chains,
        "start": kernel.start.tolist(),
        "steps": kernel.steps.tolist(),
        "last": kernel.last.tolist(),
    }
    return pa.Table.from_pylist([row], schema=SCHEMAS[TABLE])


def kernel_of(table: pa.Table) -> Kernel:
    """The inverse of `kernel_table`. Raises ValueError for one that another version has learnt."""
    row = table.to_pylist()[0]
    kernel = Kernel(
        start=np.array(row["start"]), steps=np.array(row["steps"]), last=np.array(row["last"]), chains=row["chains"]
    )
    shapes = kernel.start.shape, kernel.steps.shape, kernel.last.shape
    if row["prior"] != PRIOR_VERSION or shapes != ((POINTS,), (POINTS, POINTS), (2, POINTS)):
        raise ValueError("the kernel was learnt by another version of stepvalue")
    return kernel
