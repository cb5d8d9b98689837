"""The site: prose in Markdown, the reference from docstrings, the gallery from examples/. It asks nothing of outside.

    python -m sphinx -W --keep-going -b html docs docs/_build && python docs/check_site.py docs/_build
    python -m sphinx -b linkcheck docs docs/_build/linkcheck    # for who has a network: are addresses outside alive?

Examples that read data are run where $STREAMS_DATA names a folder that has them, and shown without output elsewhere.
"""

import inspect
import logging
import os
import re
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

BEGAN = time.time()
HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import venn  # noqa: E402

logging.getLogger("venn").setLevel(logging.ERROR)  # that loops were compiled, and where to, is no part of an answer

project, author, copyright = "vennstream", "the authors of vennstream", "the authors of vennstream"
version = release = venn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "api/generated/*.examples"]
templates_path = ["_templates"]
default_role = "py:obj"  # `Name` in a docstring is a link where the name is in the reference, else a word in code
nitpicky = True
# Single backticks stand around names, parameters and formulas alike: only roles that say what they point to are strict.
nitpick_ignore_regex = [("py:obj", ".*")]
# The gallery's own functions cannot be pickled into the cache; `.name` means that of any class; folders in examples/
# hold what studies are made of, which is no page.
suppress_warnings = ["config.cache", "ref.python", "sphinx_gallery.duplicate_filename"]
linkcheck_timeout = 20

# Reference
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say types, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them, with their text
numpydoc_class_members_toctree = False

# Prose
myst_heading_anchors = 3

# Page
html_theme = "pydata_sphinx_theme"
html_title = "vennstream"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "vennstream"},
    "navbar_align": "left",
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "header_links_before_dropdown": 9,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "changelog": [], "gallery/index": []}

# Gallery
# In the order of the page: what is run anywhere, with data, with packages, and what takes minutes and is shown unrun.
QUICKLY = {"alarms", "conformal", "electricity", "label_shift"}  # run with --quick
RUN = ["own_csv", "predicted_label", "inductive_validity", "label_shift", "alarms", "grid_search"]
RUN += ["calibration_display", "sparse_text"]
ON_DATA = ["conformal", "electricity"]
WITH = {"frames": ["pandas", "polars", "pyarrow", "narwhals"], "river_progressive": ["river"]}
SHOWN = [
    "electricity_window",
    "any_stream",
    "scalers_online",
    "covtype",
    "rueping_2004",
    "benitez_pena_2020",
]
ORDER = [f"{name}.py" for name in (*RUN, *WITH, *ON_DATA, *SHOWN)]


def with_data():
    """Return whether the examples that read data can."""
    folder = Path(os.environ.get("STREAMS_DATA", "/nowhere"))
    return all((folder / name).is_file() for name in ("pima_diabetes.csv", "elec2.csv.gz", "optdigits.csv"))


def to_run():
    """Return the names of the examples that run here."""
    able = [name for name, packages in WITH.items() if all(map(find_spec, packages))]
    return RUN + able + (ON_DATA if with_data() else [])


def in_order(name):
    """Return where an example stands in the gallery; new ones come last."""
    return ORDER.index(name) if name in ORDER else len(ORDER)


def arguments(_gallery, script):
    """Return the command line of an example."""
    return ["--quick"] if Path(script["src_file"]).stem in QUICKLY else []


def drawn(_block, variables, gallery):
    """Put the figures that an example has just saved under runs/, where it runs, into its page."""
    from sphinx_gallery.scrapers import figure_rst

    folder, paths = Path("runs"), []
    for figure in sorted(folder.glob("*.png")):
        if figure.stat().st_mtime >= BEGAN:  # else it is somebody's
            paths.append(next(variables["image_path_iterator"]))
            shutil.move(figure, paths[-1])
    if paths and not any(folder.iterdir()):
        folder.rmdir()
    return figure_rst(paths, gallery["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(" + "|".join(to_run()) + r")\.py$",
    "within_subsection_order": in_order,
    "reset_argv": arguments,
    "image_scrapers": (drawn,),
    "reset_modules": (),
    "default_thumb_file": str(HERE / "_static" / "printed.png"),
    "capture_repr": (),
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "copyfile_regex": "",
    "min_reported_time": 1e9,  # how long a busy machine took is nobody's business
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "doc_module": ("venn", "streams"),
    "backreferences_dir": "api/generated/backreferences",
    "inspect_global_variables": False,
}


def skip(_app, _what, name, _member, skipped, _options):
    """Leave out what scikit-learn adds to each of its estimators."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing|metadata_routing", name) else skipped


def full_names():
    """Return where each public name is documented: in `venn` itself, or in its room."""
    rooms = [room for one in venn.__all__ if inspect.ismodule(room := getattr(venn, one))]
    # What is written small might be the name of a parameter.
    there = {name: f"{room.__name__}.{name}" for room in rooms for name in room.__all__ if name[0].isupper()}
    there |= {name: f"venn.{name}" for name in venn.__all__ if not inspect.ismodule(getattr(venn, name))}
    del there["ByScores"]  # a base class, of measures and of taxonomies: each page means its own
    return there


FULL = full_names()


def linked(name):
    """Return a name between backticks, as a link to its page if it is public."""
    return f"`{name} <{FULL[name]}>`" if name in FULL else f"`{name}`"


def plain(_app, _what, _name, _object, _options, lines):
    """Let |f| be an absolute value and coef_ a name in docstrings, where reStructuredText would see references.

    A public name alone is a link, whichever room has it.
    """
    code = False
    for i, line in enumerate(lines):
        code = bool(line.strip()) and (code or line.lstrip().startswith(">>>"))
        if not code:
            parts = re.split(r"(``.*?``)", line)
            parts[::2] = [re.sub(r"`(\w+)`", lambda m: linked(m[1]), part) for part in parts[::2]]
            parts[::2] = [re.sub(r"`([^`]+)`(?=\w)", r"`\1`\\ ", part) for part in parts[::2]]  # `Name`s
            parts[::2] = [re.sub(r"(?<=\w)_(?=[\s,.;:)]|$)|\|", r"\\\g<0>", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def setup(app):
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", plain, priority=100)  # before numpydoc
