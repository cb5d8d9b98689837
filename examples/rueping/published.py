"""The tables of Rueping (2004): ten-fold cross-validation, means over eleven sets, four of them private."""

SETS = 11

# method: MSE, mean cross-entropy in the paper's unit, mean rank by MSE, mean rank by cross-entropy.
RESULTS = {
    "linear": {
        "KLR": (0.1000, 0.0332, 3.18, 3.09),
        "Platt": (0.0912, 0.0291, 3.18, 3.45),
        "Beta": (0.5966, float("inf"), 9.00, 9.00),
        "Beta-2": (0.0915, 0.0301, 3.27, 3.45),
        "Bin-10": (0.1201, 0.0384, 5.18, 5.55),
        "Bin-50": (0.1301, 0.0415, 6.55, 6.45),
        "Softmax": (0.0975, 0.0343, 5.18, 5.36),
        "01": (0.0970, 0.0317, 4.91, 5.09),
        "PP": (0.0933, 0.0296, 3.45, 3.55),
    },
    "rbf": {
        "KLR": (0.0748, 0.0242, 1.82, 1.55),
        "Platt": (0.0770, 0.0250, 2.82, 2.64),
        "Beta": (0.6009, float("inf"), 9.00, 9.00),
        "Beta-2": (0.0819, 0.0278, 4.27, 4.27),
        "Bin-10": (0.0939, 0.0305, 4.82, 4.36),
        "Bin-50": (0.1106, 0.0356, 6.73, 6.73),
        "Softmax": (0.0946, 0.0327, 5.73, 5.91),
        "01": (0.0916, 0.0307, 5.36, 5.64),
        "PP": (0.0904, 0.0289, 3.64, 4.73),
    },
}

# Number of sets on which "the row is better than the column" was rejected, by cross-entropy.
TESTED = ("KLR", "Platt", "Beta-2", "PP", "Bin-10", "Softmax")
REJECTIONS = {
    "linear": (
        (0, 2, 2, 2, 2, 2), (4, 0, 0, 1, 1, 0), (4, 3, 0, 2, 1, 0),
        (6, 4, 3, 0, 2, 0), (7, 6, 6, 5, 0, 3), (6, 8, 8, 6, 4, 0),
    ),
    "rbf": (
        (0, 0, 0, 0, 0, 0), (6, 0, 0, 1, 0, 0), (7, 6, 0, 4, 1, 0),
        (7, 5, 4, 0, 2, 0), (8, 3, 3, 3, 0, 2), (9, 9, 7, 9, 6, 0),
    ),
}  # fmt: skip

KLR_RBF_MSE = (1e-7, 0.191)  # mushroom and liver
