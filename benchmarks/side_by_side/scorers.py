"""Contenders that calibrate the scores of one given model; imports of peers stay inside functions."""

import numpy as np

import venn
from venn.nonconformity import ScoreMeasure

from .bags import Ours
from .measure import LEVELS, Block, Loop


def two(p0, p1):
    """Return the pairs (..., 2, 2) of both classes from the pair of the second one."""
    p0, p1 = np.asarray(p0, float), np.asarray(p1, float)
    return np.stack([np.stack([1 - p1, 1 - p0], -1), np.stack([p0, p1], -1)], -2)


class Growing(Loop):
    """Base of calibrators fitted anew at each step to all scores so far."""

    def __init__(self, task):
        self.task, self.scores, self.y = task, [], []

    def learn(self, x, y):
        self.scores.append(self.score(x))
        self.y.append(y)


class VennAbersPackage(Growing):
    """The venn-abers package, fitted anew at each step: it has no insertion."""

    def score(self, x):
        return self.task.scorer.predict_proba(x[None])[0]

    def predict(self, x):
        from venn_abers import VennAbers

        if len(set(self.y)) < 2:
            return 0.0, 1.0
        model = VennAbers().fit(np.array(self.scores), np.array(self.y))
        return model.predict_proba(self.score(x)[None])[1][0]

    def read(self, raw):
        p0, p1 = raw
        p = p1 / (1 - p0 + p1)
        return {"proba": np.array([1 - p, p]), "pairs": two(p0, p1)}


class TwoRefits(VennAbersPackage):
    """Two fits of scikit-learn's isotonic regression a step, which is the definition."""

    def score(self, x):
        return float(self.task.scorer.decision_function(x[None])[0])

    def predict(self, x):
        from sklearn.isotonic import IsotonicRegression

        s = self.score(x)
        bag = np.array([*self.scores, s])
        return [IsotonicRegression().fit(bag, np.array([*self.y, y])).predict([s])[0] for y in (0, 1)]


class OursOnScorer(Ours):
    """Ours on the given scorer; for two classes the point forecast is the merge that the package uses too."""

    def __init__(self, task, predictor, **options):
        super().__init__(predictor(venn.FrozenScorer(task.scorer, task.classes), **options))

    def read(self, raw):
        said = super().read(raw)
        if "pairs" in said and len(said["proba"]) == 2:
            p0, p1 = raw.pairs[1]
            p = p1 / (1 - p0 + p1)
            said["proba"] = np.array([1 - p, p])
        return said


def in_order(model, proba, task):
    """Return probabilities (n, c) in the order of all classes, 0 for those that a model has not seen."""
    out = np.zeros((len(proba), len(task.classes)))
    out[:, np.asarray(model, int)] = proba
    return out


class VennAbersBatch(Block):
    """The venn-abers package on a given scorer: one calibration set, all objects at once."""

    def answer(self, task):
        from venn_abers import VennAbersCalibrator

        p_cal, p_test = task.scorer.predict_proba(task.calibrate[0]), task.scorer.predict_proba(task.X)
        model = VennAbersCalibrator()
        asked = {"p_cal": p_cal, "y_cal": task.calibrate[1], "p_test": p_test}
        if len(task.classes) == 2:
            proba, pair = model.predict_proba(p0_p1_output=True, **asked)
            return {"proba": proba, "pairs": two(pair[:, 0], pair[:, 1])}
        proba = model.predict_proba(**asked)  # which sets the classes
        return {"proba": in_order(model.classes, proba, task)}


class MAPIEAbers(Block):
    """MAPIE's Venn-Abers on a given scorer."""

    def answer(self, task):
        from mapie.calibration import VennAbersCalibrator

        model = VennAbersCalibrator(task.scorer, cv="prefit").fit(*task.calibrate)
        if len(task.classes) == 2:
            proba, pair = model.predict_proba(task.X, p0_p1_output=True)
            return {"proba": proba, "pairs": two(pair[:, 0], pair[:, 1])}
        return {"proba": in_order(model.classes_, model.predict_proba(task.X), task)}


class SklearnPrefit(Block):
    """scikit-learn's calibration of a given scorer."""

    def __init__(self, task, method):
        self.method = method

    def answer(self, task):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        model = CalibratedClassifierCV(FrozenEstimator(task.scorer), method=self.method).fit(*task.calibrate)
        return {"proba": in_order(model.classes_, model.predict_proba(task.X), task)}


def merged(block):
    """Return our point forecasts; for two classes by the merge that the package uses too."""
    if block.pairs.shape[1] > 2:
        return block.proba
    p0, p1 = block.pairs[:, 1].T
    p = p1 / (1 - p0 + p1)
    return np.column_stack([1 - p, p])


class OursAbersBatch(Block):
    """Ours on the given scorer, calibrated once."""

    def answer(self, task):
        model = venn.InductiveVennAbers(venn.FrozenScorer(task.scorer, task.classes))
        model.learn_many(task.calibrate[0], task.calibrate[1])
        block = model.predict_many(task.X)
        return {"proba": merged(block), "pairs": block.pairs}


class Cross(Block):
    """Cross Venn-Abers: training and calibration sets together, five folds."""

    def __init__(self, task, library, **options):
        self.library, self.options = library, options

    def answer(self, task):
        from sklearn.linear_model import LogisticRegression

        X, y = np.vstack([task.train[0], task.calibrate[0]]), np.append(task.train[1], task.calibrate[1])
        base = LogisticRegression(max_iter=1000)
        if self.library == "ours":
            model = venn.VennAbersCalibrator(base, cv=5, **self.options).fit(X, y)
            return {"proba": in_order(model.classes_, model.predict_proba(task.X), task)}
        if self.library == "venn-abers":
            from venn_abers import VennAbersCalibrator

            model = VennAbersCalibrator(base, inductive=False, n_splits=5, random_state=0)
        else:
            from mapie.calibration import VennAbersCalibrator

            model = VennAbersCalibrator(base, inductive=False, n_splits=5, random_state=0)
        model.fit(X, y)
        seen = np.unique(y)
        return {"proba": in_order(seen, model.predict_proba(task.X), task)}


class Denied(ScoreMeasure):
    """One minus the probability of the own class: called hinge in crepes and lac in MAPIE."""

    pointwise = True

    def values(self, scores, codes):
        if scores.shape[1] == 2:
            scores = scores / 2  # a decision value f is given as -f and f; the probability is the logistic of f
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return 1 - shares[np.arange(len(codes)), codes] / shares.sum(axis=1)


class CrepesSets(Block):
    """p-values of crepes; `online` takes the true labels too and learns each after its object."""

    def __init__(self, task, online=False, **options):
        self.online, self.options = online, options

    def answer(self, task):
        from crepes import WrapClassifier

        model = WrapClassifier(task.scorer)
        model.calibrate(*task.calibrate, seed=0, **self.options)
        more = {"y": task.y, "online": True} if self.online else {}
        return {"p": model.predict_p(task.X, **more)}


class TorchCPSets(Block):
    """Sets of TorchCP at three levels, from the logarithms of the given scorer's probabilities."""

    def __init__(self, task, score, by_class=False, **options):
        self.score, self.by_class, self.options = score, by_class, options

    def answer(self, task):
        import torch
        from torchcp.classification import predictor, score

        torch.manual_seed(0)
        torch.set_num_threads(1)
        kind = predictor.ClassConditionalPredictor if self.by_class else predictor.SplitPredictor
        model = kind(getattr(score, self.score)(**self.options))
        with np.errstate(divide="ignore"):
            calibrate, asked = (
                torch.tensor(np.log(task.scorer.predict_proba(X)), dtype=torch.float32)
                for X in (task.calibrate[0], task.X)
            )
        sets = np.empty((len(task.y), len(task.classes), len(LEVELS)), bool)
        for i, level in enumerate(LEVELS):
            model.calculate_threshold(calibrate, torch.tensor(task.calibrate[1]), level)
            sets[:, :, i] = model.predict_with_logits(asked).numpy()
        return {"sets": sets}


def positive(rows):
    """Return for each row whether its first feature is positive: two groups of objects, whatever the data."""
    return (np.asarray(rows)[..., 0] > 0).astype(int)


class MAPIESets(Block):
    """Sets of MAPIE at three levels."""

    def __init__(self, task, score="lac"):
        self.score = score

    def answer(self, task):
        from mapie.classification import SplitConformalClassifier

        confidence = [1 - level for level in LEVELS]
        model = SplitConformalClassifier(task.scorer, confidence, self.score, prefit=True, random_state=0)
        model.conformalize(*task.calibrate)
        return {"sets": model.predict_set(task.X)[1]}


class OursSets(Block):
    """p-values of ours, calibrated once."""

    def __init__(self, task, by=None, **options):
        self.by, self.options = by, options

    def answer(self, task):
        model = venn.InductiveConformal(venn.FrozenScorer(task.scorer, task.classes), **self.options)
        if self.by is not None:
            model = venn.predictors.by_group(model, self.by)
        model.learn_many(task.calibrate[0], task.calibrate[1])
        return {"p": model.predict_many(task.X).p_values}


class OursReplay(Block):
    """Ours on the given scorer, objects and labels in one call: the same as one by one."""

    def __init__(self, task, predictor, **options):
        self.predictor, self.options = predictor, options

    def answer(self, task):
        model = self.predictor(venn.FrozenScorer(task.scorer, task.classes), **self.options)
        if len(task.calibrate[1]):
            model.learn_many(*task.calibrate)
        block = model.replay_many(task.X, task.y)
        if hasattr(block, "p_values"):
            return {"p": block.p_values}
        return {"proba": merged(block), "pairs": block.pairs}


class OursSetsOnline(Ours):
    """p-values of ours, each label learned after its object; `adaptive` ones on top of them where that is asked."""

    def __init__(self, task, adaptive=False, **options):
        self.sets = venn.InductiveConformal(venn.FrozenScorer(task.scorer, task.classes), **options)
        super().__init__(self.sets)
        self.calibration, self.adaptive = task.calibrate, adaptive

    def run(self, task):
        self.sets.learn_many(*self.calibration)
        if self.adaptive:
            super().__init__(venn.predictors.Adaptive(self.sets, LEVELS))
        return super().run(task)
