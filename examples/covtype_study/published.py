"""Results published by Cawley & Talbot: Forest Cover Type by 21 pairs of classes, with and without adjusted priors."""

import numpy as np

NAMES = ("Spruce", "Lodgepole", "Ponderosa", "Cottonwood", "Aspen", "Douglas", "Krummholz")
COUNTS = np.array([211840, 283301, 35754, 2747, 9493, 17367, 20510])  # table 1
PRIORS = COUNTS / COUNTS.sum()
TRAIN, VALIDATION = 1620, 540  # of each class: the file's first 11 340 rows, and the 3780 after them

# Tables 2 and 3: rows are the actual classes, columns the predicted ones.
STANDARD = np.array(
    [
        [151012, 43086, 202, 0, 2334, 573, 12473],
        [58232, 194655, 5293, 96, 14013, 6906, 1946],
        [14, 696, 26539, 1004, 400, 4941, 0],
        [0, 0, 41, 530, 0, 16, 0],
        [127, 477, 96, 0, 6585, 47, 1],
        [31, 376, 2554, 321, 152, 11773, 0],
        [776, 95, 0, 0, 1, 0, 17478],
    ]
)
ADJUSTED = np.array(
    [
        [151946, 42831, 302, 0, 1063, 337, 13201],
        [60032, 202093, 6698, 4, 5998, 4261, 2055],
        [31, 763, 30608, 208, 34, 1950, 0],
        [0, 2, 232, 313, 0, 40, 0],
        [437, 1789, 326, 0, 4571, 196, 14],
        [55, 957, 5627, 73, 45, 8450, 0],
        [805, 110, 0, 0, 0, 0, 17435],
    ]
)
TEST_PRIORS_ACCURACY = 0.7355  # adjusted to the class frequencies of the test part itself


def accuracy(matrix):
    """Return the share of examples on the diagonal."""
    return np.trace(matrix) / matrix.sum()


def mean_recall(matrix):
    """Return the mean over classes of the share that is recognised."""
    return (np.diag(matrix) / matrix.sum(axis=1)).mean()
