"""Questions and answers by definition: write every event with the moment it is due, and sort."""


def events(examples, delays):
    """Return ("question", id, x) and ("answer", id, y) in order; a delay of None is no answer.

    Moments are (questions asked so far, questions before answers, due, id).
    """
    n, found = len(examples), []
    for i, ((x, y), delay) in enumerate(zip(examples, delays, strict=True), 1):
        found.append(((i, 0, 0, 0), ("question", i, x)))
        if delay is not None:
            found.append(((min(i + delay, n), 1, i + delay, i), ("answer", i, y)))
    return [event for _, event in sorted(found, key=lambda pair: pair[0])]
