"""Describes the addresses of a served model: as OpenAPI, and as a page that loads nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from venn import __version__

CODES = {
    "200": "What was said; the same request again gets the same bytes.", "207": "Of many messages some are refused.",
    "404": "No question of this id was asked.", "409": "The id is known with another object or label.",
    "410": "The question was given up.", "413": "The request is too long.",
    "422": "It is refused, and nothing has happened: the sentence says why, and `at` where.",
    "429": "Too much waits: try again after the seconds in Retry-After.",
    "503": "The journal is being read, or the run has ended: try again after the seconds in Retry-After.",
}  # fmt: skip


def openapi(name: str, example: Mapping[str, Any], root: str, series: bool = False) -> dict[str, Any]:
    """Return the description of all addresses, by hand: it stands beside the routes of `ServedModel`.

    Parameters
    ----------
    name : str
        Of the model.
    example : mapping
        With an object x and a label y.
    root : str
        Path at which it is shown.
    series : bool
        Whether labels are the values of a series.
    """
    x, y = example["x"], example["y"]
    question, learned = {"id": "a7", "x": x}, {"id": "a7", "y": y}
    id = {"oneOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}
    objects = {"oneOf": [{"type": "array", "minItems": 1}, {"type": "object", "minProperties": 1}]}
    asked = {"type": "object", "required": ["x"], "properties": {"id": id, "x": objects}, "additionalProperties": False}
    label = {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}
    answered = {"type": "object", "required": ["id", "y"], "properties": {"id": id, "y": label},
                "additionalProperties": False}  # fmt: skip
    outlook = {
        "type": "object", "properties": {
            "id": id, "event": {"type": "integer"}, "verdict": {"type": ["string", "null"]},
            "predictions": {"type": "object", "additionalProperties": {"type": "object"}},
        },
    }  # fmt: skip
    alarm = {"type": "object", "properties": {"predictor": {"type": "string"}, "sentence": {"type": "string"}}}
    verdict = {
        "type": "object", "properties": {
            "id": id, "event": {"type": "integer"}, "verdict": {"type": ["string", "null"]},
            "alarms": {"type": "array", "items": alarm},
        },
    }  # fmt: skip
    if series:
        asked["required"], answered["required"] = [], ["y"]
        answered["properties"] = {"id": id, "y": {"type": ["number", "null"]}}
    path = {"/path": {"get": _read("What is said of the next values of the series", "200 503")}} if series else {}
    tensor = {"name": "x", "shape": [1, len(x)], "datatype": "FP64", "data": list(x) if isinstance(x, list) else []}
    infer = {"inputs": [tensor], "parameters": {"ids": ["a8"]}}
    if isinstance(x, Mapping):
        infer["inputs"] = [_column(key, value) for key, value in x.items()]
    of_id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    paths = {
        "/ask": {"post": _posted("Ask about an object, or many", asked, question, outlook,
                                 "With an id the request can be repeated safely. A list of such objects, or a line for "
                                 "each (application/x-ndjson), asks about many.", "200 207 409 413 422 429 503")},
        "/answer": {"post": _posted("Say which label came, and learn it", answered, learned, verdict,
                                    "Also a list, or lines. The alarms are those that this label rings.",
                                    "200 207 404 409 410 413 422 429 503")},
        **path,
        "/questions/{id}": {"get": _read("What was said of a question, and what came", "200 404 503", [of_id])},
        "/": {"get": _read("The page of the run, for a browser", "200")},
        "/metrics": {"get": _read("Its figures, for Prometheus", "200")},
        "/healthz": {"get": _read("Whether the server answers; nobody is refused", "200")},
        "/readyz": {"get": _read("Whether the journal is read; nobody is refused", "200 503")},
        f"/v2/models/{name}/infer": {"post": _posted("Ask, by the Open Inference Protocol", {"type": "object"}, infer,
                                                     {"type": "object"}, "Ids stand in the parameters; labels come by "
                                                     "/answer.", "200 409 413 422 429 503")},
        f"/v2/models/{name}": {"get": _read("What the protocol says of the model", "200")},
        "/v2/health/live": {"get": _read("Whether the server answers", "200")},
        "/v2/health/ready": {"get": _read("Whether the journal is read", "200 503")},
    }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {"title": "A model that learns", "version": __version__,
                 "description": "Ask about an object; when its label comes, answer, and the model learns it."},
        "servers": [{"url": root or "/"}],
        "paths": paths,
    }  # fmt: skip


def _column(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "shape": [1], "datatype": "BYTES" if isinstance(value, str) else "FP64", "data": [value]}


def _codes(codes: str, schema: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = {code: {"description": CODES[code]} for code in codes.split()}
    if schema is not None:
        found["200"]["content"] = {"application/json": {"schema": schema}}
    return found


def _posted(summary: str, schema: Any, example: Any, said: Any, more: str, codes: str) -> dict[str, Any]:
    body = {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}
    return {"summary": summary, "description": more, "requestBody": body, "responses": _codes(codes, said)}


def _read(summary: str, codes: str, parameters: Any = ()) -> dict[str, Any]:
    return {"summary": summary, "parameters": list(parameters), "responses": _codes(codes)}


def docs(description: Mapping[str, Any]) -> str:
    """Return a description as HTML, without a script."""
    parts = []
    for path, methods in description["paths"].items():
        for method, one in methods.items():
            more = f"<p>{escape(one['description'])}</p>" if "description" in one else ""
            if "requestBody" in one:
                example = json.dumps(one["requestBody"]["content"]["application/json"]["example"])
                more += f"<pre>{escape(_curl(path, example))}</pre>"
            rows = "".join(
                f"<tr><td>{code}</td><td>{escape(said['description'])}</td></tr>"
                for code, said in one["responses"].items()
            )
            parts.append(
                f'<section class="card wide"><h2>{method.upper()} {escape(path)}</h2><p>{escape(one["summary"])}.</p>'
                f"{more}<div class='table'><table>{rows}</table></div></section>\n"
            )
    info = description["info"]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(info["title"])}: addresses</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
</head>
<body>
<header><h1>{escape(info["title"])}</h1><p>{escape(info["description"])}</p>
<p><a href="./">the page of the run</a> · <a href="openapi.json">openapi.json</a></p></header>
<main>
{"".join(parts)}</main>
</body>
</html>
"""


def _curl(path: str, example: str) -> str:
    quoted = example.replace("'", "'\\''")
    return f"curl -H 'Content-Type: application/json' -d '{quoted}' http://HOST{path}"
