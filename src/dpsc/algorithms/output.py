"""DPSC_out: learn the weights, add noise to them, project the donors after the intervention."""

from __future__ import annotations

from dpsc.algorithms.printed import PrintedOutputPerturbation


class OutputPerturbation:
    """Private synthetic control by output perturbation."""

    @staticmethod
    def as_printed(
        *, epsilon1: float, epsilon2: float, lambda_: float, seed: int | None = None
    ) -> PrintedOutputPerturbation:
        """Return the paper's Algorithm 2: (epsilon1 + epsilon2, 0)-differentially private, far too noisy to use.

        Parameters
        ----------
        epsilon1, epsilon2 : float
            The budgets of the learning and of the projection step.
        lambda_ : float
            The paper's lambda, above 0.
        seed : int, optional
            For experiments only; the result then says that it is not private.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsc import Panel
        >>> panel = Panel.from_arrays(np.ones((4, 6)), np.ones(6), treatment_time=4, bounds=(-1, 1))
        >>> result = OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=4.0).fit(panel)
        >>> print(result.guarantee)
        (1, 0)-differential privacy, replace one donor, float arithmetic; paper, Theorem step1.privacy, ...
        """
        return PrintedOutputPerturbation(epsilon1=epsilon1, epsilon2=epsilon2, lambda_=lambda_, seed=seed)
