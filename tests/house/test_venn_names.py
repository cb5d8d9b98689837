"""Public names are what they say, whatever was imported before them."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import typing
from pathlib import Path

import streams
import venn


def test_no_public_name_is_that_of_a_module_beside_it():
    """Importing the module would hide what the name means."""
    rooms = [venn, streams]
    rooms += [
        importlib.import_module(found.name)
        for room in (venn, streams)
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
        if found.ispkg
    ]
    assert len(rooms) > 10
    for room in rooms:
        beside = {module.name for module in pkgutil.iter_modules(room.__path__)} & {*getattr(room, "__all__", ())}
        hidden = [name for name in beside if not inspect.ismodule(getattr(room, name))]
        assert not hidden, f"{room.__name__} has modules named as {hidden}"


WITHOUT_RIVER = """
import inspect, pydoc, sys, typing
sys.modules["river"] = None
import venn
from venn import *
from venn.adapters import *
assert hasattr(venn, "RiverClassifier")
assert dict(inspect.getmembers(venn))["RiverClassifier"] is RiverClassifier
assert "RiverClassifier" in pydoc.render_doc(venn)
assert "predict_set_one" in pydoc.render_doc(RiverClassifier)
assert not isinstance(1, RiverClassifier)
for make in (
    lambda: RiverClassifier(venn.Forecaster),
    lambda: RiverRegressor(),
    lambda: FromRiver(object(), ["no", "yes"]),
    lambda: RegressorFromRiver(object()),
):
    try:
        make()
    except ImportError as error:
        assert "pip install river" in str(error)
    else:
        raise AssertionError(make)
"""


def test_without_river_names_can_be_listed_and_nothing_made():
    subprocess.run([sys.executable, "-c", WITHOUT_RIVER], check=True)


def test_type_hints_of_public_names_can_be_had():
    rooms = [getattr(venn, name) for name in venn.__all__ if inspect.ismodule(getattr(venn, name))]
    asked = set()
    for room in (venn, streams, *rooms):
        for name in room.__all__:
            one = getattr(room, name)
            inner = vars(one).values() if inspect.isclass(one) else ()
            plain = (getattr(each, "__func__", getattr(each, "fget", each)) for each in inner)
            for thing in (one, *plain):
                if inspect.isfunction(thing) or inspect.isclass(thing):
                    typing.get_type_hints(thing)
                    asked.add(thing)
    assert len(asked) > 1000


def test_names_of_the_table_in_the_readme_can_be_typed():
    table = (Path(__file__).parents[2] / "README.md").read_text().partition("## Which one")[2].partition("##")[0]
    names = set(re.findall(r"`[^`]*`", table))
    typed = {name for text in names for name in re.findall(r"\w+(?=\()", text)}
    typed |= {text.strip("`") for text in names if text.strip("`").isidentifier()}
    assert {"by_group", "Forecaster", "RiverClassifier", "ForecasterClassifier"} <= typed
    assert not [name for name in typed if not hasattr(venn, name)]
