"""
Texts over thousands of words: may rows stay sparse, and is accuracy what was claimed?
======================================================================================

Random texts on three subjects share most of their words. Scikit-learn's tf-idf weights, fitted to other texts, turn
each one into a sparse row in which one number in a hundred is not 0. A least-squares machine with the linear kernel
learns them one by one, and keeps them sparse. Before each label a Venn predictor says what accuracy it claims. The
same machine on dense rows gives the same answers, to the last bit::

    python examples/sparse_text.py
"""

from time import perf_counter

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import venn

SUBJECTS = ("gardens", "ships", "stars")
WORDS, TEXTS, EARLIER = 8000, 400, 1500


def texts(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Return n texts of made-up words, and their subjects: a subject says its own words three times as often."""
    rng = np.random.default_rng(seed)
    rates = 1 / (np.arange(WORDS) + 20.0)
    own = np.random.default_rng(0).integers(0, len(SUBJECTS), WORDS)
    subjects = rng.integers(0, len(SUBJECTS), n)
    written = []
    for subject in subjects:
        p = rates * np.where(own == subject, 3, 1)
        words = rng.choice(WORDS, int(rng.integers(20, 120)), p=p / p.sum())
        written.append(" ".join(f"word{word}" for word in words))
    return written, [SUBJECTS[subject] for subject in subjects]


def replayed(rows: object, labels: list[str]) -> tuple[list[venn.Multiprobability], venn.LeastSquaresSVM, float]:
    """Return the predictions of a replay, the machine, and seconds."""
    machine = venn.LeastSquaresSVM(venn.Linear(), C=10, classes=SUBJECTS)
    model = venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax()))
    predictions = []
    start = perf_counter()
    for x, y in zip(rows, labels, strict=True):
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    return predictions, machine, perf_counter() - start


def main() -> None:
    vectorizer = TfidfVectorizer().fit(texts(EARLIER, seed=1)[0])
    written, labels = texts(TEXTS, seed=2)
    X = vectorizer.transform(written)
    sparse = [X[i : i + 1] for i in range(TEXTS)]
    replayed(sparse[:5], labels[:5])  # compile before timing

    predictions, machine, seconds = replayed(sparse, labels)
    hits = np.array([p.label == y for p, y in zip(predictions, labels, strict=True)])
    lower, upper = np.mean([(p.lower, p.upper) for p in predictions], axis=0)
    print(f"{TEXTS} texts over {X.shape[1]} words, {X.nnz / TEXTS:.0f} of them in a text: {seconds:.1f} s kept sparse")
    print(f"accuracy {hits.mean():.3f}, claimed between {lower:.3f} and {upper:.3f}; residual {machine.residual:.0e}")
    taken, instead = 12 * X.nnz + 16 * TEXTS, 8 * X.shape[0] * X.shape[1]
    print(f"the objects take {taken / 1e6:.1f} MB, and dense {instead / 1e6:.1f} MB")

    dense, _, seconds = replayed(X.toarray(), labels)
    same = all(np.array_equal(a.probabilities, b.probabilities) for a, b in zip(predictions, dense, strict=True))
    print(f"made dense: {seconds:.1f} s, {'the same predictions' if same else 'other predictions'}")


if __name__ == "__main__":
    main()
