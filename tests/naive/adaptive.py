"""Sets with a long-run error rate, by definition: a threshold for each level, moved after every label.

A label is in the set of level k if its p-value is above the threshold of level k and those of all lower levels.
"""


class Adaptive:
    """Thresholds that are never clipped; `sizes_of_steps(t)` is the size of step t."""

    def __init__(self, levels, sizes_of_steps):
        self.levels, self.size = levels, sizes_of_steps
        self.thresholds = list(levels)
        self.t = 0
        self.errors = [0] * len(levels)
        self.moves = 0.0  # sum of 1 / size at the ends of earlier segments

    def sets(self, p_values):
        """Return for each level the positions of the labels in its set."""
        return [
            [j for j, p in enumerate(p_values) if all(p > a for a in self.thresholds[: k + 1])]
            for k in range(len(self.levels))
        ]

    def learn(self, told, y):
        """Move the thresholds by the sets that were told."""
        self.t += 1
        for k, members in enumerate(told):
            missed = 0 if y in members else 1
            self.errors[k] += missed
            self.thresholds[k] += self.size(self.t) * (self.levels[k] - missed)

    def restart(self):
        """Start the clock of the steps anew."""
        self.moves += 1 / self.size(self.t)
        self.t = 0

    def bound(self, k, late=0):
        """Return the bound for the k-th level from 0."""
        return (1 + (k + 1) * self.size(1) * (1 + late)) * (self.moves + (1 / self.size(self.t) if self.t else 0))
