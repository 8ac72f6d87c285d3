"""What limits a rate when no resource does."""

from __future__ import annotations

import numpy as np

# Numpy integers: for each plain one passed to a kernel, numba would compile the kernel anew.
LIMIT_BOUND, LIMIT_NOTHING = np.int64(-1), np.int64(-2)
