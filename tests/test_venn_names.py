"""Public names are what they say, whatever was imported before them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import venn


def test_no_public_name_is_hidden_by_the_module_of_its_name():
    rooms = [
        room for name in venn.__all__ if inspect.ismodule(room := getattr(venn, name)) and hasattr(room, "__path__")
    ]
    found = 0
    for room in rooms:
        for module in pkgutil.iter_modules(room.__path__):
            if module.name in room.__all__:
                importlib.import_module(f"{room.__name__}.{module.name}")
                assert not inspect.ismodule(getattr(room, module.name)), f"{room.__name__}.{module.name}"
                found += 1
    assert found  # `venn.monitors.together` is one
