"""A run as one HTML file that loads nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from time import time

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.resources import Resources
from jinja2 import Template

from venn.show.page import words
from venn.show.page.drawing import Comparison, Predictor
from venn.show.page.feed import Run
from venn.show.page.server import HERE, style

PLACES = ("accuracy", "evidence", "calibration")


def write_report(run: Run, path: str | os.PathLike[str], title: str, data: str) -> None:
    """Write the figures, tables and words of a run to one file, which appears whole or not at all.

    Parameters
    ----------
    run : Run
    path : str or path
        Missing folders are made.
    title : str
    data : str
        The source of the run, such as the name of its file.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    file = Path(path)
    content = render(run, title, data)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content, "utf-8")
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def render(run: Run, title: str, data: str) -> str:
    """Return the report as HTML."""
    run.finish()
    roots, predictors = [], []
    several = len(run.names) > 1
    if several:
        compared = Comparison(run).model
        compared.name = "compared"
        roots.append(compared)
    for position, name in enumerate(run.names):
        drawn = Predictor(run, name)
        for place in PLACES:
            model = drawn.models[place]
            model.name = f"p{position}{place}"
            roots.append(model)
        predictors.append({
            "name": name, "place": f"p{position}", "numbers": words.numbers(run, name),
            "promise": words.promise(run, name), "latest": words.latest(run, name) if run.latest else "",
        })  # fmt: skip
    counts = run.counts
    shown = [f"<b>{words.text(data)}</b>", run.space.counted, f"report of {words.clock(time())}"]
    if run.created:
        shown.insert(1, f"begun {words.clock(run.created)}")
    if counts.time:
        shown.insert(2, f"last event {words.clock(counts.time)}")
    parts = {
        "head": f"{words.verdict(run)}<p class='fine'>{' · '.join(shown)}</p>{words.facts(counts, None)}",
        "summary": words.summary(run), "alarms": words.alarms(run, 100), "parameters": words.parameters(run),
        "predictors": predictors, "several": several, "style": style(), "script": (HERE / "page.js").read_text("utf-8"),
    }  # fmt: skip
    template = Template((HERE / "report.html").read_text("utf-8"))
    # Inline; bokeh leaves out its scripts that are not needed here.
    doc = Document()
    with doc.models.freeze():  # the models are collected once, not for every root
        for root in roots:
            doc.add_root(root)
    return str(file_html(doc, Resources(mode="inline"), title, template=template, template_variables=parts))
