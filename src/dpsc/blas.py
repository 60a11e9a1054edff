"""Limit BLAS to one thread, where matrices are small or where we use our own threads.

A multi-threaded BLAS waits by spinning, which on a busy machine makes a T × T eigenproblem ten times slower.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside a ``with`` block."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # so that its BLAS is loaded when the controller looks for libraries

    return ThreadpoolController()
