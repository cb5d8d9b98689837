"""Learning models in MLflow's registry: saved with all they have learned, loaded to go on or to predict."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from venn import __version__
from venn.online import checkpoint
from venn.prediction import plain

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

FLAVOR = "vennstream"
DATA = "model"  # folder of a saved model
STATE, SKOPS, PICKLE = "state.venn", "scorers.skops", "scorers.pkl"
LEVEL = 0.05  # of the sets and intervals in a frame
OURS = ("vennstream", "numpy", "scikit-learn", "scipy", "numba", "pandas")
log = logging.getLogger("venn")


def _imported() -> Any:
    """Import MLflow and what it needs, or say which extra is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own, as it is imported
            import cloudpickle
            import mlflow
            import pandas
            from mlflow import models, pyfunc
            from mlflow.tracking import artifact_utils
            from mlflow.utils import environment
    except ImportError as error:
        raise ImportError(
            f"MLflow's registry needs the packages of the extra 'mlflow' ({error}): pip install 'vennstream[mlflow]'"
        ) from error
    return SimpleNamespace(
        cloudpickle=cloudpickle, mlflow=mlflow, pandas=pandas, models=models, pyfunc=pyfunc,
        downloaded=artifact_utils._download_artifact_from_uri, environment=environment,
    )  # fmt: skip


def save_model(
    model: Any, path: str | Path, *, signature: ModelSignature | None = None, input_example: Any = None,
    pip_requirements: Sequence[str] | str | None = None, extra_pip_requirements: Sequence[str] | str | None = None,
    metadata: Mapping[str, Any] | None = None, mlflow_model: Any = None,
) -> None:  # fmt: skip
    """Save a model with all that it has learned as an MLflow model.

    Parameters
    ----------
    model : Forecaster, Panel or Predictor
        A scorer that was given is saved with it: by skops where that knows all of its types, else by cloudpickle.
    path : str or path
        Of a new folder.
    signature : ModelSignature, optional
        By default it is inferred from `input_example`, if that is given.
    input_example : array or frame of some objects, optional
    pip_requirements, extra_pip_requirements : list of str or path, optional
        By default the installed versions of this package, what it needs, and the packages of a given scorer.
    metadata : mapping, optional
    mlflow_model : mlflow.models.Model, optional
        As MLflow gives it.

    Raises
    ------
    FileExistsError
        There is something at `path`.
    TypeError
        The model, or its scorer, cannot be saved.

    Examples
    --------
    >>> import venn.adapters.mlflow as registry
    >>> registry.save_model(model, "churn", input_example=X[:5])  # doctest: +SKIP
    >>> registry.load_model("churn").learn_one(x, "yes")  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("churn").predict(X[:2])  # doctest: +SKIP
      label  probability     lower     upper  set_no  set_yes
    0    no     0.941211  0.857143  0.965517    True    False
    1   yes     0.950120  0.888889  1.000000   False     True
    """
    its, folder = _imported(), Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"path must be a new folder, got {folder}, in which there is something")
    data = folder / DATA
    data.mkdir(parents=True, exist_ok=True)
    scorers = checkpoint.models(model)
    checkpoint.save(data / STATE, model)
    if scorers:
        _save_scorers(scorers, data, its)
    known = its.models.Model() if mlflow_model is None else mlflow_model
    if input_example is not None:
        frame = _rows(input_example)
        known.signature = its.models.infer_signature(frame, frame_of(model, frame))
    if signature is not None:
        known.signature = signature
    if metadata is not None:
        known.metadata = dict(metadata)
    known.add_flavor(FLAVOR, version=__version__, data=DATA, kind=type(model).__name__)
    its.pyfunc.add_to_model(
        known, loader_module="venn.adapters.mlflow", data=DATA, conda_env="conda.yaml", python_env="python_env.yaml"
    )
    environment, requirements, constraints = its.environment._process_pip_requirements(
        [f"mlflow-skinny=={its.mlflow.__version__}", *requirements_of(scorers)],
        pip_requirements,
        extra_pip_requirements,
    )
    (folder / "requirements.txt").write_text("".join(f"{one}\n" for one in requirements))
    if constraints:
        (folder / "constraints.txt").write_text("".join(f"{one}\n" for one in constraints))
    (folder / "conda.yaml").write_text(json.dumps(environment, indent=1))  # which is YAML, too
    its.environment._PythonEnv.current().to_yaml(folder / "python_env.yaml")
    known.save(folder / "MLmodel")


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a model to the current run of MLflow; return what MLflow says of it.

    Parameters
    ----------
    model : Forecaster, Panel or Predictor
    name : str
    **options
        Those of `save_model` and of MLflow's own `Model.log`, such as `registered_model_name`.
    """
    import venn.adapters.mlflow as flavor

    return _imported().models.Model.log(artifact_path=None, name=name, flavor=flavor, model=model, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Return a saved model, which goes on learning as if it had never been saved, to the last bit.

    To load a scorer that skops does not know runs code, as it does with MLflow's other models.

    Parameters
    ----------
    model_uri : str
        Such as ``models:/churn/1`` or a path.
    dst_path : str, optional
        Folder into which it is downloaded.
    """
    return _loaded(Path(_imported().downloaded(artifact_uri=model_uri, output_path=dst_path), DATA))


def frame_of(model: Any, rows: Any) -> Any:
    """Return a model's predictions for some objects as a frame; nothing is learned.

    Of a `Forecaster` of classes the columns are ``label``, its ``probability``, its ``lower`` and ``upper`` bound, and
    for each class, ``set_CLASS``, whether it is in the set at .05; of one of numbers ``label`` (the median), and
    ``lower`` and ``upper``, the ends of the interval at .05. Of other predictors all that they say, PREDICTOR.KEY.
    """
    frame = _imported().pandas.DataFrame
    X = rows if _named(model) else np.asarray(rows, float)
    many = getattr(model, "predict_many", None)
    said: Any = [model.predict_one(x) for x in X] if many is None else many(X)
    if hasattr(said, "sets"):  # a forecaster of classes
        codes = [model.classes.index(label) for label in said.labels]
        at = np.arange(len(codes)), np.array(codes, int)
        bounds = said.intervals[at]
        columns = {"label": said.labels, "probability": said.proba[at], "lower": bounds[:, 0], "upper": bounds[:, 1]}
        columns |= {f"set_{label}": said.p_values[:, k] > LEVEL for k, label in enumerate(model.classes)}
        return frame(columns)
    if hasattr(said, "interval"):  # of numbers
        ends = said.interval(LEVEL)
        return frame({"label": said.labels, "lower": ends[:, 0], "upper": ends[:, 1]})
    blocks = said if isinstance(said, Mapping) else {type(model).__name__: said}
    return frame(
        {
            f"{name}.{key}": [plain(one)[key] for one in block]
            for name, block in blocks.items()
            for key in (plain(block[0]) if len(block) else ())
        }
    )


class PyfuncModel:
    """The wrapper that MLflow's `pyfunc` calls: a saved model that predicts and does not learn.

    Parameters
    ----------
    model : Forecaster, Panel or Predictor
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return the prediction for each row, as `frame_of` does."""
        return frame_of(self.model, _rows(model_input))

    def get_raw_model(self) -> Any:
        """Return the model itself."""
        return self.model


def _load_pyfunc(path: str) -> PyfuncModel:
    """Return what `pyfunc.load_model` needs: MLflow calls this name."""
    return PyfuncModel(_loaded(Path(path)))


def _loaded(data: Path) -> Any:
    its = _imported()
    scorers: list[Any] = []
    if (data / SKOPS).exists():
        from skops import io

        scorers = io.load(data / SKOPS)
    elif (data / PICKLE).exists():
        with (data / PICKLE).open("rb") as file:
            scorers = its.cloudpickle.load(file)
    return checkpoint.load(data / STATE, scorers)


def _save_scorers(scorers: list[Any], data: Path, its: Any) -> None:
    """Save given scorers: without code, where that can be done."""
    try:
        from skops import io

        content = io.dumps(scorers)
        unknown = io.get_untrusted_types(data=content)
        if not unknown:
            (data / SKOPS).write_bytes(content)
            return
        why = f"skops does not trust {', '.join(unknown)}"
    except Exception as error:  # there is no skops, or an estimator's own code fails as it is taken apart
        why = f"skops cannot save it: {error}"
    log.warning("the scorer is saved as a pickle, which runs code where it is loaded: %s", why)
    with (data / PICKLE).open("wb") as file:
        its.cloudpickle.dump(scorers, file)


def requirements_of(scorers: Sequence[Any]) -> list[str]:
    """Return the installed versions of what a model needs: ours, and the packages of its scorers."""
    packages = importlib.metadata.packages_distributions()
    names = [*OURS, "skops"] if scorers else list(OURS)
    for one in scorers:
        names += packages.get(type(one).__module__.partition(".")[0], [])
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _named(model: Any) -> bool:
    """Whether a model's scorer was fitted to a table."""
    return any(getattr(one, "feature_names_in_", None) is not None for one in checkpoint.models(model))


def _rows(given: Any) -> Any:
    """Return objects as a frame, whose columns are numbered where they have no names."""
    frame = _imported().pandas.DataFrame
    if isinstance(given, frame):
        return given
    return frame(given) if isinstance(given, Mapping) else np.asarray(given, float)
