"""Bets against a floor by their definitions: all products, over again at every step."""

from math import ceil, log2, prod

SHARES = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2]


def bets(risk, chance=1.0, guessed=False):
    """Return the bets: none may lose everything at a step."""
    if guessed:
        largest = 0.9 / (risk + 1 / chance - 1)
        return [largest * share for share in (*SHARES, 1)]
    smaller = [1 / 64 / 2**k for k in range(ceil(log2(1 / chance)), 0, -1)]
    return [share / risk for share in (*smaller, *SHARES)]


def capital(zs, risk, each):
    """Return K: the mean over the bets of their products."""
    return sum(prod(1 + bet * (z - risk) for z in zs) for bet in each) / len(each)


def sum_of_capitals(zs, risk, each):
    """Return R: the sum of the capitals of those who begin to bet at each step."""
    return sum(capital(zs[start:], risk, each) for start in range(len(zs)))


def by_lot(loss, guess, chance, asked):
    """Return what stands for a loss whose label is asked for with a chance."""
    return guess + (loss - guess) / chance if asked else guess
