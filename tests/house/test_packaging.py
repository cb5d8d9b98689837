"""What is imported when, what the public names are, what is said before loops are compiled."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import streams
import venn

HEAVY = ("numba", "scipy", "sklearn", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "dask", "river")


def run(code, **environment):
    """Run a program in a fresh interpreter and return what it wrote to stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment, check=True
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("package", ["venn", "streams"])
def test_an_import_loads_nothing_heavy(package):
    loaded, _ = run(f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})")
    assert package in loaded.split()
    assert set(loaded.split()).isdisjoint(HEAVY)


LAZY = [path.parent for path in sorted(Path(venn.__file__).parent.rglob("__init__.pyi"))]


@pytest.mark.parametrize("folder", LAZY, ids=lambda folder: folder.name)
def test_the_stub_says_where_each_public_name_is(folder):
    package = import_module("venn" if folder.name == "venn" else f"venn.{folder.name}")
    lines = [node for node in ast.parse((folder / "__init__.pyi").read_text()).body if isinstance(node, ast.ImportFrom)]
    found = {}
    for line in lines:
        (name,) = line.names
        # A stub exports only what it renames to itself.
        assert name.asname == name.name
        found[name.name] = line.module
    assert sorted(found) == sorted(package.__all__)
    for name, module in found.items():
        if module is None:
            assert getattr(package, name) is import_module(f"{package.__name__}.{name}")
        else:
            assert getattr(package, name) is getattr(import_module(f"{package.__name__}.{module}"), name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TransductivVenn", ": did you mean venn.TransductiveVenn?"),
        ("Plat", ": did you mean venn.maps.Platt?"),
        ("MarginBins", ": did you mean venn.taxonomies.MarginBins?"),
        ("nothing_like_it", ""),
        ("_imported_", None),  # as tools ask
        ("cli.main", ""),
    ],
)
def test_a_misspelt_name_is_asked_back(name, said):
    with pytest.raises(AttributeError) as caught:
        getattr(venn, name)
    assert said is None or str(caught.value) == f"module 'venn' has no attribute {name!r}{said}"


def test_a_module_that_was_not_imported_is_named_python_asks_nothing_and_our_machines_need_no_scikit_learn():
    loaded, said = run(
        "import sys, traceback, venn\n"
        "for name in ('cli', 'TransductivVenn'):\n"
        "    try:\n        getattr(venn, name)\n    except AttributeError:\n        sys.excepthook(*sys.exc_info())\n"
        "venn.OneVsAllSVM, venn.TransductiveVenn; print(*sys.modules)"
    )
    assert "module 'venn' has no attribute 'cli': it is a module, import venn.cli first\n" in said
    assert said.count("TransductiveVenn") == 1
    assert "numba" in loaded.split()
    assert "sklearn" not in loaded.split()


@pytest.mark.parametrize("package", [venn, streams])
def test_every_public_name_is_there_and_no_other(package):
    assert len(set(package.__all__)) == len(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name).__doc__ for name in package.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018


@pytest.mark.parametrize("package", [venn, streams])
def test_types_are_declared(package):
    assert (Path(package.__file__).parent / "py.typed").exists()


def test_compilation_is_announced_once_and_only_when_there_is_some_of_ours(tmp_path):
    code = "import numpy as np; from venn._compiled import jit; from venn._compiled.rows import dot_row, gaussians; "
    code += "jit.NOTICEABLE = 0; o = np.ones(1); "
    code += "dot_row(np.ones((1, 1)), 1, o, o); gaussians(1.0, 1, o)"
    _, first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.count("compiling loops that are used for the first time") == 1
    assert str(tmp_path) in first
    _, second = run(f"{code}; import numba; numba.njit(lambda a: a + 1)(1)", NUMBA_CACHE_DIR=str(tmp_path))
    assert second == ""
