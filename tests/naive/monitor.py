"""The certified p-value as what it is: a smoothed Mondrian conformal p-value within the category of the new example."""


def certified(labels, own, event, tau):
    """Return the p-value of the example of label `own` among `labels`, those of its category, itself included.

    Nonconformity is 1 where the event fails, as `event(label)` says, else 0.
    """
    strange = [0 if event(label) else 1 for label in labels]
    mine = 0 if event(own) else 1
    above = sum(1 for a in strange if a > mine)
    equal = sum(1 for a in strange if a == mine)
    return (above + tau * equal) / len(labels)


def best_label(labels, classes):
    """Return the most frequent label, ties to the first class."""
    return max(classes, key=lambda k: (labels.count(k), -classes.index(k)))
