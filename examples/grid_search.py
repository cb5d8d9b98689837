"""
Which kernel says most about breast cancer, and does the chosen one keep what it claims?
========================================================================================

scikit-learn's search over kernel widths, with the log loss of Venn probabilities as score. The guarantee needs a kernel
chosen without looking at the examples that are counted: so 150 examples are for the search, 200 others for the bag::

    python examples/grid_search.py
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import venn

X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
search, bag, new = np.split(order, [150, 350])

pipe = make_pipeline(StandardScaler(), venn.VennClassifier(C=10, svm=venn.LeastSquaresSVM))
widths = [venn.RBF(gamma) for gamma in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)]
found = GridSearchCV(pipe, {"vennclassifier__kernel": widths}, scoring="neg_log_loss", cv=5).fit(X[search], y[search])
for kernel, score in zip(widths, found.cv_results_["mean_test_score"], strict=True):
    print(f"{kernel!s:<18} log loss {-score:.3f}")

scaler, chosen = found.best_estimator_  # the scaler, too, is fitted in the search alone
chosen.set_params(rule=venn.prediction.CategoryClass()).fit(scaler.transform(X[bag]), y[bag])
objects, labels = scaler.transform(X[new]), y[new]
p, predicted = chosen.predict_proba(objects), chosen.predict(objects)
ends = chosen.predict_interval(objects)[np.arange(len(labels)), predicted]
accuracy, (low, high) = (predicted == labels).mean(), ends.mean(axis=0)
error = 2 * np.sqrt(accuracy * (1 - accuracy) / len(labels))
kept = low - error <= accuracy <= high + error
print(f"{chosen.kernel} on {len(labels)} new objects: log loss {log_loss(labels, p):.3f}")
print(f"accuracy {accuracy:.3f}, claimed {low:.3f} to {high:.3f}: {'kept' if kept else 'not kept'}")
