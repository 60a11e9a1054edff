"""The types of arrays that all modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Write = Callable[[Array], Array]
"""Writes a block of donors into T × size memory, one column each, and returns the filled part; may be called again."""
