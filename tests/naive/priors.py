"""Prior shift by definition: examples that weigh by class, told one at a time."""

import numpy as np
from scipy.optimize import minimize


def row(categories, y, weights, c):
    """Return the share of weight of each class in the category of the last example, itself included."""
    mass = [0.0] * c
    for category, label in zip(categories, y, strict=True):
        if category == categories[-1]:
            mass[label] += weights[label]
    return np.array(mass) / sum(mass)


def p_value(values, y, weights, tau, conditional=False):
    """Return the share of weight of the stranger examples, ties in part: the last is the new one."""
    greater = equal = total = 0.0
    for value, label in zip(values, y, strict=True):
        if conditional and label != y[-1]:
            continue
        total += weights[label]
        greater += weights[label] * (value > values[-1])
        equal += weights[label] * (value == values[-1])
    return (greater + tau * equal) / total


def likelihood(q, proba, train):
    """Return the mean log-likelihood ratio of class frequencies q."""
    return np.mean([np.log(sum(q[k] / train[k] * p[k] for k in range(len(train)))) for p in proba])


def one_round(q, proba, train):
    """Return the mean posterior probabilities under priors q: expectation, then maximisation."""
    posteriors = []
    for p in proba:
        joint = np.array([p[k] * q[k] / train[k] for k in range(len(train))])
        posteriors.append(joint / joint.sum())
    return np.mean(posteriors, axis=0)


def likeliest(proba, train):
    """Return class frequencies by a generic minimiser, over softmax coordinates."""

    def frequencies(z):
        e = np.exp(z - z.max())
        return e / e.sum()

    found = minimize(
        lambda z: -likelihood(frequencies(z), proba, train), np.zeros(len(train)), method="BFGS", options={"gtol": 1e-9}
    )
    return frequencies(found.x)
