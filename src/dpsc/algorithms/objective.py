"""DPSC_obj: perturb the objective, minimise it, project the donors after the intervention."""

from __future__ import annotations

from dpsc.algorithms.printed import PrintedObjectivePerturbation


class ObjectivePerturbation:
    """Private synthetic control by objective perturbation."""

    @staticmethod
    def as_printed(
        *,
        epsilon1: float,
        epsilon2: float,
        lambda_: float,
        delta: float = 0.0,
        c: float | None = None,
        seed: int | None = None,
    ) -> PrintedObjectivePerturbation:
        """Return the paper's Algorithm 3. It is not proved private: ``fit`` needs ``unproven=True``.

        Parameters
        ----------
        epsilon1, epsilon2 : float
            The budgets of the learning and of the projection step, as the paper claims them.
        lambda_ : float
            The paper's lambda, above 0.
        delta : float
            0 for Laplace noise, above 0 for Gaussian noise in the objective.
        c : float, optional
            The paper's bound on eigenvalues; ``(1 + sqrt(16 n - 15)) T0`` by default.
        seed : int, optional
            For experiments only.

        Examples
        --------
        >>> import numpy as np
        >>> from dpsc import Panel
        >>> panel = Panel.from_arrays(np.ones((4, 6)), np.ones(6), treatment_time=4, bounds=(-1, 1))
        >>> algorithm = ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=4.0)
        >>> algorithm.fit(panel, unproven=True).guarantee is None
        True
        """
        return PrintedObjectivePerturbation(
            epsilon1=epsilon1, epsilon2=epsilon2, lambda_=lambda_, delta=delta, c=c, seed=seed
        )
