"""The study: every fold of every set through every method, and the constrained machines; each result computed once."""

from dataclasses import dataclass, replace
from functools import partial

from studies.script import results

from benitez_pena import constrained, control, machines, published, sets
from benitez_pena.methods import RESAMPLED, methods

LARGE = "adult"


@dataclass(frozen=True)
class Study:
    """The settings of the study.

    Parameters
    ----------
    data : tuple of str
        Names of sets.
    folds, inner : int
        Of the outer cross-validation, and of the inner cross-validation that chooses C.
    resamples : int
        For a training part, for sets of the usual size.
    fewer : int
        The same for `adult` and for sets aside.
    large_folds : int
        How many folds of `adult` are computed: all of them, with all resamples, would take longer than everything else.
    plan : control.Plan
        The settings of the constrained machines.
    """

    data: tuple = tuple(sets.SOURCES)
    folds: int = published.FOLDS
    inner: int = published.INNER_FOLDS
    resamples: int = published.RESAMPLES
    fewer: int = 100
    large_folds: int = 3
    plan: control.Plan = control.Plan()  # noqa: RUF009 - frozen

    def resamples_of(self, name):
        """Return the number of resamples of each fold of a set."""
        return min(self.fewer, self.resamples) if name in (LARGE, *sets.ASIDE) else self.resamples

    def folds_of(self, name):
        """Return how many of the folds of a set are computed."""
        return min(self.large_folds, self.folds) if name == LARGE else self.folds

    def tasks(self):
        """Return all (set, "fold" or "control", number), the largest set first: the last to end should be short."""
        order = sorted(self.data, key=lambda name: name != LARGE)
        found = [(name, "fold", k) for name in order for k in range(self.folds_of(name))]
        controlled = [name for name in order if name not in sets.ASIDE]
        return found + [(name, "control", k) for name in controlled for k in range(self.plan.splits)]


def one_fold(study, name, k, store):
    """Return the labels of fold k and, by method, its probabilities, bounds and seconds; and results of resampling."""
    data = sets.load(name)
    rest, out = sets.splits(data.y, study.folds)[k]
    made = {}

    def fold():
        # Called only if something must be computed.
        if not made:
            made["fold"] = sets.prepared(data.X, data.y, rest, out)
        return made["fold"]

    seed, title = sets.SEED + k, f"{name.replace(', ', '-')}-{k}"
    where = {"data": data.fingerprint, "folds": study.folds, "fold": k, "seed": seed, "inner": study.inner}
    where |= {"Cs": machines.CS, "held": machines.HELD_OUT, "tolerance": machines.TOLERANCE}
    scores = store.of(
        f"{title}-scores", where | {"stage": "scores"}, lambda: machines.svm_scores(fold(), study.inner, seed)
    )
    found = {}
    for method, what in methods().items():
        found[method] = store.of(
            f"{title}-{method.replace(', ', '-').replace(' ', '-')}",
            where | {"stage": repr(what)},
            lambda what=what: what.probabilities(fold(), scores),
        )
    plan = replace(study.plan, resamples=study.resamples_of(name))
    resampled = store.of(
        f"{title}-resampled",
        where | {"stage": "resampled", "plan": plan.of_resampling()},
        lambda: control.resampled(fold(), data.y[out], plan, seed),
    )
    for method, column in zip(RESAMPLED, ("p", "best"), strict=True):
        found[method] = {"p": resampled[column], "seconds": resampled["seconds"]}
    return {"y": data.y[out], "n": len(rest), "scores": scores, "methods": found, "resampled": resampled}


def one_control(study, name, k, store):
    """Return the answers of the constrained machines on split k of a set."""
    data = sets.load(name)
    plan, seed = study.plan, sets.SEED + k
    key = {
        "data": data.fingerprint,
        "stage": "control",
        "plan": plan,
        "scip": constrained.pyscipopt is not None,
        "seed": seed,
    }
    return store.of(f"{name}-control-{k}", key, lambda: control.constrained(data, plan, seed))


def _work(study, task, store):
    name, kind, k = task
    return {"fold": one_fold, "control": one_control}[kind](study, name, k, store)


def run(study, folder, jobs=1, done=lambda task: None):
    """Compute what is missing; return all answers by task, and how many results were computed.

    Parameters
    ----------
    study : Study
    folder : path
        Where results are kept.
    jobs : int
        Processes.
    done : callable
        Called with (set, kind, number) after each task.
    """
    return results(partial(_work, study), [study.tasks()], folder, jobs, done)
