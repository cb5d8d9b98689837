"""The results printed by Benitez-Pena, Blanquero, Carrizosa and Ramirez-Cobo (2020): their Tables 2, 3 and 4."""

FOLDS, INNER_FOLDS, RESAMPLES = 10, 10, 500
RADII = (0, 10, 20, 30)  # of Tao's machine
CS = tuple(2.0**k for k in range(-5, 6))  # with the objective w'w + C sum xi, so twice the usual C

# Table 2. Name: rows, attributes, positive rows.
SIZES = {
    "wisconsin": (569, 30, 357),
    "colon": (62, 2000, 22),
    "diabetes": (759, 8, 263),
    "leukemia": (72, 7128, 47),
    "srbct": (83, 1022, 40),
    "heart": (140, 13, 40),
    "adult": (32560, 14, 7841),
    "divorce": (170, 54, 84),
    "german": (1000, 20, 300),
    "cervical": (858, 36, 55),
    "banknote": (1372, 5, 610),
}
SETS = tuple(SIZES)

# Table 3: mean squared error of the probability of the positive class.
MSE = {
    "wisconsin": {"bootstrap": 0.003, "Sollich": 0.064, "Platt": 0.021, "PPSVM": (0.028, 0.019, 0.034, 0.055)},
    "colon": {"bootstrap": 0.201, "Sollich": 0.241, "Platt": 0.252, "PPSVM": (0.208, 0.208, 0.208, 0.208)},
    "diabetes": {"bootstrap": 0.192, "Sollich": 0.190, "Platt": 0.157, "PPSVM": (0.229, 0.233, 0.234, 0.234)},
    "leukemia": {"bootstrap": 0.0, "Sollich": 0.239, "Platt": 0.010, "PPSVM": (0.029, 0.029, 0.029, 0.029)},
    "srbct": {"bootstrap": 0.010, "Sollich": 0.237, "Platt": 0.011, "PPSVM": (0.0, 0.0, 0.0, 0.0)},
    "heart": {"bootstrap": 0.143, "Sollich": 0.158, "Platt": 0.121, "PPSVM": (0.150, 0.118, 0.207, 0.218)},
    "adult": {"bootstrap": 0.144, "Sollich": 0.128, "Platt": 0.068, "PPSVM": (0.148, 0.078, 0.142, 0.167)},
    "divorce": {"bootstrap": 0.0, "Sollich": 0.189, "Platt": 0.021, "PPSVM": (0.024, 0.024, 0.024, 0.024)},
    "german": {"bootstrap": 0.197, "Sollich": 0.229, "Platt": 0.168, "PPSVM": (0.256, 0.256, 0.256, 0.247)},
    "cervical": {"bootstrap": 0.013, "Sollich": 0.187, "Platt": 0.028, "PPSVM": (0.039, 0.039, 0.032, 0.035)},
    "banknote": {"bootstrap": 0.017, "Sollich": 0.008, "Platt": 0.008, "PPSVM": (0.009, 0.145, 0.221, 0.238)},
}

# Table 4: the most accurate C alone; its other column repeats Table 3.
BEST_C = {
    "wisconsin": 0.02, "colon": 0.2, "diabetes": 0.225, "leukemia": 0.0, "srbct": 0.0, "heart": 0.214,
    "adult": 0.152, "divorce": 0.0, "german": 0.28, "cervical": 0.047, "banknote": 0.0,
}  # fmt: skip


def mse(name, method):
    """Return the paper's mean squared error on a set by a method of this study; None if it has none.

    A set aside, such as "cervical, targets", is another version of the set named before the comma.
    """
    name = name.split(",")[0]
    if method.startswith("PPSVM"):
        return MSE[name]["PPSVM"][RADII.index(int(method.split()[-1]))]
    # The paper does not say whether "best C" is one machine's label or the share of its resamples.
    if method in ("best C, resampled", "best C, one machine"):
        return BEST_C[name]
    return MSE[name].get(method)
