"""Kernel logistic regression of two classes by Newton's method."""

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import expit

STEPS, TOLERANCE = 200, 1e-9
FLOOR = 2.0**-32  # smallest p (1 - p) in Newton's matrix


@np.errstate(invalid="ignore", over="ignore")  # NaN misses the tolerance
def fitted(K, y, C):
    """Return the coefficients (n,) and the bias that minimise 1/2 |w|^2 + C sum ln(1 + exp(-t f)), t = +1 or -1.

    At the optimum f = K beta + b with beta = C (y - p), p = 1 / (1 + exp(-f)). Damped Newton steps are made until no
    probability errs by more than 1e-9, each with a Cholesky factor of I + W^1/2 K W^1/2, as in Rasmussen & Williams
    (2006), "Gaussian processes for machine learning", algorithm 3.1.

    Parameters
    ----------
    K : (n, n) positive semidefinite, else `LinAlgError`
    y : (n,) of 0 and 1, both there
    C : float > 0
    """

    def pull(score):
        return C * (y * expit(-score) - (1 - y) * expit(score))

    def settled(beta, score):
        outputs = K @ beta
        bias = float((score - outputs).mean())
        score = outputs + bias
        return beta, bias, score, float((np.abs(pull(score) - beta) / C).max())

    n = len(y)
    best = settled(np.zeros(n), np.full(n, np.log(y.sum() / (n - y.sum()))))
    for _ in range(STEPS):
        beta, _, score, residual = best
        p = expit(-np.abs(score))
        W = C * np.maximum(p * (1 - p), FLOOR)
        root = np.sqrt(W)
        r = pull(score) - beta
        B = K * np.outer(root, root)
        B[np.diag_indices(n)] += 1.0
        factor = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
        both = root[:, None] * cho_solve((factor, True), np.column_stack([r / root, root]), check_finite=False)
        shift = (both[:, 0].sum() + beta.sum()) / both[:, 1].sum()
        delta = both[:, 0] - shift * both[:, 1]
        motion = (r - delta) / W
        # A step this short cannot be too long; coefficients that affect no score may still move.
        short = residual < 1e-6 or np.abs(motion).max() < 1e-6
        share = 1.0
        while share > 1e-10:
            ahead = pull(score + share * motion) - beta - share * delta
            # The objective is convex: the step is not too long unless the slope has turned steeply upwards.
            if short or ahead @ motion >= -0.5 * (r @ motion):
                break
            share *= 0.5
        trial = settled(beta + share * delta, score + share * motion)
        if residual < TOLERANCE and trial[3] >= residual:
            break
        best = trial
        if best[3] <= TOLERANCE:
            break
    if not best[3] <= TOLERANCE:
        raise ArithmeticError(f"kernel logistic regression must converge, got residual {best[3]:.3g} with C = {C:g}")
    return best[:2]
