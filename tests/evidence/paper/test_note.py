"""Statements of docs/explanation/paper.md without a test elsewhere; every test that it names exists."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from dpsc.custodian.weights import printed
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.evidence.audit.sensitivities import jacobian_ratio
from dpsc.evidence.audit.shipped import cases
from dpsc.evidence.paper import recipes, theory
from dpsc.evidence.paper.points import Point, generate
from dpsc.privacy import sensitivity

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "explanation" / "paper.md"


def names_in(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists_and_every_statement_names_one() -> None:
    text = PAGE.read_text("utf-8")
    for path, name in re.findall(r"(tests/\S+\.py)::(\w+)", text):
        assert name.startswith("test_"), name
        assert name in names_in(ROOT / path), f"{path}::{name}"
    statements = re.split(r"(?m)^\*\*(\d+)\. ", text)[1:]
    assert [int(number) for number in statements[::2]] == list(range(1, len(statements) // 2 + 1))
    assert len(statements) == 2 * 17
    for number, statement in zip(statements[::2], statements[1::2], strict=True):
        assert re.search(r"`tests/\S+\.py::test_\w+`", statement), f"statement {number} has nothing to run"


def test_on_the_worst_pair_the_printed_output_perturbation_costs_less_than_it_claims() -> None:
    """x = -x' along y, z = -z': its exact loss is 0.58 of the claim; the post-period part is all of its half."""
    (case,) = cases(["printed-output"])
    (exact,) = (attack for attack in case.attacks if attack.name == "exact loss")
    assert 0.5 < exact.reach() <= exact.claim.epsilon  # type: ignore[attr-defined]


def test_the_printed_bound_on_the_jacobian_holds_and_a_sharper_one_does() -> None:
    """Over R^n: (1 + c/nu)^2 as printed, and 1 + 2 T0/nu, which a donor of zeros against one of ones attains."""
    rng = np.random.default_rng(0)
    T0, nobody = 4, np.array([])
    for _ in range(300):
        n, nu = int(rng.integers(1, 8)), float(rng.uniform(1, 50))
        X, x = rng.uniform(-1, 1, (n, T0)), np.sign(rng.normal(size=T0))
        if rng.random() < 0.5:
            X = np.sign(X)
        ratio = jacobian_ratio(X, x, nobody, nu)
        assert ratio <= (1 + 2 * T0 / nu) * (1 + 1e-9)
        assert 1 + 2 * T0 / nu <= (1 + printed.default_c(n, T0) / nu) ** 2
    assert jacobian_ratio(np.zeros((1, T0)), np.ones(T0), nobody, 7.0) == pytest.approx(1 + 2 * T0 / 7)


def test_the_minimiser_of_the_printed_objective_has_half_of_lambda() -> None:
    rng = np.random.default_rng(1)
    n, T0, lambda_ = 5, 8, 6.0
    X, y = rng.uniform(-1, 1, (n, T0)), rng.uniform(-1, 1, T0)

    def slope(ridge: float) -> float:
        """How far the gradient of the printed objective is from zero at the closed form with this ridge."""
        f = np.linalg.solve(X @ X.T + ridge * np.eye(n), X @ y)
        return float(np.linalg.norm(2 / T0 * X @ (X.T @ f - y) + lambda_ / T0 * f))

    assert slope(lambda_ / 2) < 1e-14
    assert slope(lambda_ / (2 * T0)) > 0.01  # the body's closed form
    assert slope(lambda_) > 0.01  # the appendix's
    f = np.linalg.solve(X @ X.T + lambda_ / 2 * np.eye(n), X @ y)
    np.testing.assert_allclose(ridge_weights(X, y, lambda_), f, atol=1e-12)


@pytest.mark.parametrize("h", [1, 4, 9])
def test_independent_entries_cost_the_square_root_of_h_times_as_much(h: int) -> None:
    """Rows of ones against minus ones, at an output outside both: log p/q with independent and with joint noise."""
    epsilon2 = 0.7
    b = sensitivity.post_period(h) / epsilon2
    one, other, output = np.ones(h), -np.ones(h), np.full(h, 3.0)
    independent = (stats.laplace.logpdf(output - one, scale=b) - stats.laplace.logpdf(output - other, scale=b)).sum()
    joint = (np.linalg.norm(output - other) - np.linalg.norm(output - one)) / b
    assert independent == pytest.approx(math.sqrt(h) * epsilon2)
    assert joint == pytest.approx(epsilon2)


def test_the_corrected_cost_of_privacy_grows_faster_than_n_squared() -> None:
    def cost(n: int, form: theory.Form) -> float:
        setting = theory.Setting(
            n=n,
            T0=10,
            h=3,
            lambda_=10,
            epsilon1=1,
            epsilon2=1,
            signal_norm=math.sqrt(3 * n),
            weight_error=0.5,
            sigma=0.1,
            psi=1 / n,
        )
        free = replace(setting, epsilon1=math.inf, epsilon2=math.inf)
        return theory.bound("out", setting, form) - theory.bound("out", free, form)

    assert cost(40_000, "as_printed") / cost(10_000, "as_printed") == pytest.approx(4, rel=0.05)
    assert 4**2 < cost(40_000, "corrected") / cost(10_000, "corrected") <= 4**2.5


def test_with_one_donor_the_loss_of_the_printed_objective_grows_without_end() -> None:
    """n = 1: x all ones against x = 0. At the weight alpha the loss is 2 T0 (|alpha| - 1)/beta less the Jacobian."""
    T0, lambda_, epsilon1 = 10, 10.0, 5.0
    c = printed.default_c(1, T0)
    epsilon0, Delta = printed.divide_budget(epsilon1, lambda_, c)
    beta, nu = printed.printed_beta(1, T0, epsilon0, 0.0, c), lambda_ + Delta

    def log_density(alpha: float, xy: float, xx: float) -> float:
        b = 2 * xy - (2 * xx + nu) * alpha  # the noise that leads to alpha
        return -abs(b) / beta + math.log(2 * xx + nu)

    losses = [log_density(alpha, 0, 0) - log_density(alpha, T0, T0) for alpha in (0.5, 1.0, 10.0, 100.0)]
    expected = [2 * T0 * (alpha - 1) / beta - math.log(1 + 2 * T0 / nu) for alpha in (1.0, 10.0, 100.0)]
    assert losses[1:] == pytest.approx(expected)
    assert abs(losses[1]) < epsilon1 < losses[3]
    # The noise is such that a weight beyond 10 is not impossible: it has this probability on the neighbour x = 0.
    assert losses[2] > epsilon1
    assert stats.laplace.sf(10 * nu, scale=beta) == pytest.approx(0.0047, rel=0.05)


def test_the_answer_of_the_printed_objective_alone_exceeds_its_claim() -> None:
    """n = h = 1, T0 = lambda = 10, z = 1, epsilon1 = 5, epsilon2 = 1: P(|y| > 100) on x = 0 and on x = 1."""
    T0, lambda_, epsilon1, epsilon2 = 10, 10.0, 5.0, 1.0
    c = printed.default_c(1, T0)
    epsilon0, Delta = printed.divide_budget(epsilon1, lambda_, c)
    beta, W = printed.printed_beta(1, T0, epsilon0, 0.0, c), stats.laplace(scale=2 / epsilon2)

    def tail(x: float) -> float:
        curvature = 2 * T0 * x**2 + lambda_ + Delta
        f = stats.laplace(2 * T0 * x / curvature, beta / curvature)

        def beyond(w: float) -> float:
            reach = 100 / max(abs(1 + w), 1e-9)
            return float(W.pdf(w) * (f.sf(reach) + f.cdf(-reach)))

        parts = [(-200, -1), (-1, 0), (0, 200)]  # between the kinks
        return float(sum(integrate.quad(beyond, *part, limit=200)[0] for part in parts))

    assert tail(0.0) == pytest.approx(2.9e-4, rel=0.03)
    assert tail(1.0) == pytest.approx(4.7e-7, rel=0.03)
    assert math.log(tail(0.0) / tail(1.0)) == pytest.approx(6.43, abs=0.02)
    assert math.log(tail(0.0) / tail(1.0)) > epsilon1 + epsilon2


@pytest.mark.statistical
def test_with_more_donors_the_error_of_the_gram_release_falls_and_that_of_the_printed_algorithm_rises() -> None:
    errors = {}
    for n in (10, 100):
        data = generate("printed", n, 10, np.random.default_rng(0))
        out, gram = Point("printed", "out", n, 10, 10.0, 1.0, 1.0), Point("ours", "gram", n, 10, 10.0, 1.0, 1.0, 1e-6)
        rng = np.random.default_rng(1)
        errors["out", n] = float(recipes.simulate(data, [out], 200, [rng]).mean())
        errors["gram", n] = float(np.median(recipes.simulate_ours(data, gram, 6, rng)))
    assert errors["out", 100] > 30 * errors["out", 10] > 3000
    assert errors["gram", 100] < 0.7 * errors["gram", 10] < 0.2
