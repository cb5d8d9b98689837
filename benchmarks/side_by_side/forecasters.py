"""Contenders that forecast probabilities in a stream; imports of peers stay inside functions."""

import contextlib

import numpy as np

from .measure import Loop

FOLDS = 5  # of scikit-learn's calibration


class River(Loop):
    """A classifier of river; its dicts are made beforehand."""

    def __init__(self, task, make):
        self.model, self.classes = make(), task.classes

    def prepare(self, x):
        return dict(enumerate(x.tolist()))

    def predict(self, x):
        return self.model.predict_proba_one(x)

    def learn(self, x, y):
        self.model.learn_one(x, y)

    def read(self, raw):
        # A model that knows no class yet gives no forecast; with one class it gives 1.
        if not raw or sum(raw.values()) <= 0:
            return {"proba": np.full(len(self.classes), 1 / len(self.classes))}
        return {"proba": np.array([float(raw.get(k, 0.0)) for k in self.classes])}


class Refits(Loop):
    """A classifier of scikit-learn fitted anew to all examples at 64, 128, 256, ... of them, up to `last`.

    Before the first fit the forecast is uniform. Classes of fewer than `least` examples, which a calibration in folds
    refuses, are left out of the fit, and have probability 0 until the next. If a fit is still refused, it is skipped.
    """

    def __init__(self, task, make, last=None, least=1):
        self.task, self.make, self.last, self.least = task, make, last, least
        self.X, self.y, self.next, self.model = [], [], 64, None

    def predict(self, x):
        return None if self.model is None else (self.model.classes_, self.model.predict_proba(x[None])[0])

    def learn(self, x, y):
        self.X.append(x)
        self.y.append(y)
        if len(self.y) == self.next and (self.last is None or self.next <= self.last):
            self.next *= 2
            y = np.array(self.y)
            kept = np.bincount(y)[y] >= self.least
            with contextlib.suppress(ValueError):
                self.model = self.make(self.task).fit(np.array(self.X)[kept], y[kept])

    def read(self, raw):
        proba = np.zeros(len(self.task.classes))
        if raw is None:
            proba[:] = 1 / len(proba)
        else:
            proba[np.asarray(raw[0], int)] = raw[1]
        return {"proba": proba}


def river_model(name):
    """Return a function that makes a classifier of river from a task."""

    def make(task):
        from river import forest, linear_model, multiclass, naive_bayes, tree

        made = {
            "logistic": linear_model.LogisticRegression, "bayes": naive_bayes.GaussianNB,
            "tree": tree.HoeffdingAdaptiveTreeClassifier, "forest": lambda: forest.ARFClassifier(n_models=10, seed=0),
        }  # fmt: skip
        if name == "logistic" and len(task.classes) > 2:
            return River(task, lambda: multiclass.OneVsRestClassifier(made[name]()))
        if name == "tree":
            return River(task, lambda: made[name](seed=0))
        return River(task, made[name])

    return make


def calibrated(method, last=None):
    """Return a function that makes scikit-learn's calibrated support vector machine, refitted, from a task."""

    def fitted(task):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        return CalibratedClassifierCV(SVC(C=task.C, gamma=task.gamma), method=method, cv=FOLDS)

    return lambda task: Refits(task, fitted, last, FOLDS)


def logistic(last=None):
    """Return a function that makes scikit-learn's logistic regression, refitted, from a task."""

    def fitted(task):
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)

    return lambda task: Refits(task, fitted, last)
