"""A class name stands once in the product: what a reader looks up is one thing."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_class_name_stands_once():
    places = defaultdict(list)
    for path in [*ROOT.glob("venn/**/*.py"), *ROOT.glob("streams/**/*.py")]:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
