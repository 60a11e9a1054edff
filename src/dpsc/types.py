"""The arrays that everything here is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Write = Callable[[Array], Array]
"""Writes a block of donors into T × size memory, a column each, and returns the part it filled; may be called again."""
