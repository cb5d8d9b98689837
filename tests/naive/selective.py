"""An account of answers, counted anew from all that has happened; it imports nothing of the engine."""

from fractions import Fraction


def counts(events, unknown="wrong"):
    """Return (answered, wrong, waiting) after events.

    They are ("ask", number, answer or None), ("label", number, whether the answer was wrong) and ("never", number).
    """
    answered, wrong, waiting = set(), set(), set()
    for what, number, *more in events:
        if what == "ask" and more[0] is not None:
            answered.add(number)
            waiting.add(number)
        elif what == "label" and number in waiting:
            waiting.remove(number)
            if more[0]:
                wrong.add(number)
        elif what == "never" and number in waiting:
            waiting.remove(number)
            if unknown == "wrong":
                wrong.add(number)
            if unknown == "out":
                answered.remove(number)
    return len(answered), len(wrong), len(waiting)


def holds(answered, wrong, waiting, error, allowance):
    """Whether the promise is kept: numbers as they were typed."""
    return wrong + waiting <= Fraction(str(error)) * answered + Fraction(str(allowance))


def least(history, target):
    """Return how sure an answer must be, by trying each sureness of (sure, claimed, wrong) as the threshold."""
    found = float("inf")
    for level in sorted({sure for sure, _, _ in history}, reverse=True):
        among = [one for one in history if one[0] >= level]
        errors = max(sum(claimed for _, claimed, _ in among), sum(wrong for _, _, wrong in among) - 1)
        if errors <= target * len(among):
            found = level
    return float("-inf") if history and found == min(sure for sure, _, _ in history) else found
