"""The Gram release of version 0.1.0 as a yardstick, run in a process of its own from the files of that commit."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COMMIT = "f950304305fcf620bac243c220d29b8fe9f695ce"  # version 0.1.0
DELTA = 1e-6


def source() -> Path:
    """Return the folder with the package of 0.1.0, taken from git the first time."""
    folder = HERE / ".cache" / COMMIT
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        archive = subprocess.run(["git", "archive", COMMIT, "src"], cwd=HERE.parent, check=True, capture_output=True)
        fresh = tempfile.mkdtemp(dir=folder.parent)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(fresh, filter="data")
        try:
            Path(fresh).rename(folder)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    return folder / "src"


class Before:
    """A running 0.1.0: ``with Before() as before: before.estimate(problem, 1.0, seed)``."""

    def __enter__(self) -> Before:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(source()), "OPENBLAS_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def estimate(self, problem: Any, epsilon: float, seed: int) -> dict[str, Any]:
        """Release the donors, estimate the target, and return the counterfactual with its 95% intervals.

        The keys are ``counterfactual``, ``lower``, ``upper`` (arrays over the periods after T0), ``att_low`` and
        ``att_high`` (around the average effect).
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        pickle.dump((problem.donors, problem.target, problem.T0, epsilon, seed), stdin)
        stdin.flush()
        answer = pickle.load(stdout)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


def estimate(donors: Any, target: Any, T0: int, epsilon: float, seed: int) -> dict[str, Any]:
    """Do the work of :meth:`Before.estimate` with whichever dpsc this process imports."""
    from dpsc import GramRelease

    result = GramRelease(epsilon=epsilon, delta=DELTA, seed=seed).release(donors).estimate(target, T0)
    band = result.interval(0.95)
    low, high = result.att_interval(0.95)
    arrays = {"counterfactual": result.counterfactual, "lower": band["lower"], "upper": band["upper"]}
    return {key: value.to_numpy(float) for key, value in arrays.items()} | {"att_low": low, "att_high": high}


def serve() -> None:
    """Answer questions from standard input until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed must not mix with the answers
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: Any = estimate(*question)
        except Exception as error:
            answer = RuntimeError(f"0.1.0 failed: {error!r}")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
