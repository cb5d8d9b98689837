"""Contenders that learn from the first example on, transductively; imports of peers stay inside functions."""

import numpy as np

import venn

from .measure import Loop


class Ours(Loop):
    """One of our predictors."""

    def __init__(self, model):
        self.model = model
        self.predict, self.learn = model.predict_one, model.learn_one

    def read(self, raw):
        if isinstance(raw, venn.PredictionSet):
            return {"p": raw.p_values}
        said = {"proba": raw.proba}
        if isinstance(raw, venn.Multiprobability):
            said["rows"] = raw.probabilities
        if isinstance(raw, venn.prediction.ClassIntervals):
            said["pairs"] = raw.pairs
        return said


def ours(make):
    """Return a function that makes our predictor from a task."""
    return lambda task: Ours(make(task))


def kernel(task):
    return venn.RBF(task.gamma)


def squares(task):
    return venn.LeastSquaresSVM(kernel(task), task.C, task.classes)


def hinge(task):
    return venn.OneVsAllSVM(kernel(task), task.C, task.classes)


class OnlineCPVenn(Loop):
    """A Venn predictor of online-cp; its point forecast is `.point`."""

    def __init__(self, model):
        self.model = model
        self.predict, self.learn = model.predict, model.learn_one

    def read(self, raw):
        return {"proba": raw.point, "rows": raw.probs}


class OnlineCPSets(Loop):
    """A conformal classifier of online-cp: p-values of all classes."""

    def __init__(self, model, classes):
        self.model, self.classes, self.learn = model, classes, model.learn_one

    def predict(self, x):
        return self.model.predict(x, return_p_values=True)[1]

    def read(self, raw):
        return {"p": np.array([raw[k] for k in self.classes])}


def online_cp_venn(name, **options):
    """Return a function that makes a Venn predictor of online-cp."""

    def make(task):
        import online_cp.venn

        more = {key: value(task) if callable(value) else value for key, value in options.items()}
        return OnlineCPVenn(getattr(online_cp.venn, name)(label_space=task.classes, **more))

    return make


def online_cp_sets(name, **options):
    """Return a function that makes a conformal classifier of online-cp."""

    def make(task):
        import online_cp.classifiers

        more = {key: value(task) if callable(value) else value for key, value in options.items()}
        model = getattr(online_cp.classifiers, name)(label_space=task.classes, rnd_state=0, **more)
        return OnlineCPSets(model, task.classes)

    return make


class BruteSVM(Loop):
    """The published Venn predictor by scikit-learn: 2c `SVC` fits a step on a kernel matrix kept between steps."""

    def __init__(self, task):
        self.task, self.y = task, np.zeros(0, np.int64)
        self.X, self.K = np.zeros((0, task.X.shape[1])), np.zeros((0, 0))

    def matrix(self, x):
        n = len(self.y)
        K = np.empty((n + 1, n + 1))
        K[:n, :n] = self.K
        K[n, :n] = K[:n, n] = np.exp(-self.task.gamma * ((self.X - x) ** 2).sum(axis=1))
        K[n, n] = 1.0
        return K

    def scores(self, K, signs):
        from sklearn.svm import SVC

        if (signs == signs[0]).all():
            return np.full(len(signs), float(signs[0]))
        return SVC(C=self.task.C, kernel="precomputed", tol=1e-3).fit(K, signs).decision_function(K)

    def predict(self, x):
        K, c = self.matrix(x), len(self.task.classes)
        both = np.empty((2, c, len(K)))
        for k in range(c):
            for sign in (0, 1):
                both[sign, k] = self.scores(K, np.append(np.where(self.y == k, 1, -1), 2 * sign - 1))
        rows = np.empty((c, c))
        for j in range(c):
            scores = both[0].copy()
            scores[j] = both[1, j]
            category = np.rint(scores * 1e6).argmax(axis=0)
            labels = np.append(self.y, j)[category == category[-1]]
            rows[j] = np.bincount(labels, minlength=c) / len(labels)
        return rows

    def learn(self, x, y):
        self.K = self.matrix(x)
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, y)

    def read(self, raw):
        return {"proba": raw.mean(axis=0), "rows": raw}
