"""A run as one HTML file that loads nothing else."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from time import time

from bokeh.core.templates import FILE, MACROS
from bokeh.document import Document
from bokeh.embed import components
from bokeh.resources import Resources
from jinja2 import Template

from venn.show.page import first, words
from venn.show.page.drawing import Comparison, Predictor
from venn.show.page.feed import Run
from venn.show.page.server import HERE, style
from venn.show.page.web import COMPONENTS

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
            "outcomes": words.outcomes(run, name) if run.outcomes else "",
        })  # fmt: skip
    counts = run.counts
    shown = [f"<b>{words.text(data)}</b>", run.space.counted, f"report of {words.clock(time())}"]
    if run.created:
        shown.insert(1, f"begun {words.clock(run.created)}")
    if counts.time:
        shown.insert(2, f"last event {words.clock(counts.time)}")
    parts = {
        "head": f"{first.concluded(run)}<p class='fine'>{' · '.join(shown)}</p>{words.facts(counts, None)}",
        "summary": words.summary(run), "alarms": words.alarms(run, 100), "parameters": words.parameters(run),
        "predictors": predictors, "several": several, "style": style(),
    }  # fmt: skip
    template = Template((HERE / "report.html").read_text("utf-8"))
    # Inline; bokeh leaves out its scripts that are not needed here.
    doc = Document()
    with doc.models.freeze():  # the models are collected once, not for every root
        for root in roots:
            doc.add_root(root)
    drawing, places = components({root.name: root for root in roots}, wrap_script=False, wrap_plot_info=False)
    scripts = [*Resources(mode="inline", components=COMPONENTS).js_raw, (HERE / "page.js").read_text("utf-8"), drawing]
    parts |= {"title": title, "places": places, "scripts": scripts, "policy": policy(scripts)}
    return str(template.render(parts, base=FILE, macros=MACROS))


def policy(scripts: Sequence[str]) -> str:
    """Return the Content-Security-Policy of a file: these scripts run, no other, and nothing is fetched.

    BokehJS makes `style` elements when it draws, with texts that are not known before: 'unsafe-inline', styles only. A
    file has no headers, and a policy in its text cannot forbid that another page frames it.
    """
    hashes = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
