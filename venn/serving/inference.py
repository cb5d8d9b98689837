"""The Open Inference Protocol v2, as clients of model servers speak it: they ask here, and answer at our own address.

Source: the specification of the KServe project, `open-inference-protocol`, REST.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from venn import __version__
from venn.serving.addresses import JSON, Endpoint, RequestRefused, body_of, kind_of
from venn.serving.messages import Readers, Wrong, read_event, read_json, refused, within
from venn.serving.owner import ASK, MOST, EventReply, ModelEvent, RunOwner
from venn.show.door import Reply

NUMBERS = ("FP16", "FP32", "FP64", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
TYPES = (*NUMBERS, "BYTES")
VERSION = "1"


Happen = Callable[[Sequence[ModelEvent]], Awaitable[list[EventReply]]]


def addresses(name: str, owner: RunOwner, readers: Readers, happen: Happen) -> dict[str, dict[str, Endpoint]]:
    """Return what each method does at the addresses of the protocol."""
    at = f"/v2/models/{name}"
    return {
        "/v2": {"GET": partial(_constant, {"name": "vennstream", "version": __version__, "extensions": []})},
        "/v2/health/live": {"GET": partial(_constant, {"live": True})},
        "/v2/health/ready": {"GET": partial(_ready, owner)},
        at: {"GET": partial(_constant, described(name))},
        f"{at}/ready": {"GET": partial(_ready, owner)},
        f"{at}/infer": {"POST": partial(_infer, name, readers, happen)},
    }


def described(name: str) -> dict[str, Any]:
    """Return the metadata of the model: its tensors have as many columns as it has features and classes."""
    return {
        "name": name, "versions": [VERSION], "platform": "vennstream",
        "inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, -1]}],
        "outputs": [{"name": "forecast.label", "datatype": "BYTES", "shape": [-1]},
                    {"name": "forecast.probabilities", "datatype": "FP64", "shape": [-1, -1]},
                    {"name": "intervals.intervals", "datatype": "FP64", "shape": [-1, -1, 2]}],
    }  # fmt: skip


async def _constant(content: Mapping[str, Any], scope: Any, receive: Any) -> Reply:
    return Reply(JSON, msgspec.json.encode(content))


async def _ready(owner: RunOwner, scope: Any, receive: Any) -> Reply:
    owner.start()
    trouble = owner.trouble
    return Reply(JSON, msgspec.json.encode({"ready": not trouble}), {}, 503 if trouble else 200)


async def _infer(name: str, readers: Readers, happen: Happen, scope: Any, receive: Any) -> Reply:
    kind_of(scope)
    body = await body_of(scope, receive)
    try:
        request = read_json(body)
        rows, ids = rows_of(request)
    except ValueError as error:
        raise RequestRefused(refused(str(error))) from None
    events: list[ModelEvent] = []
    for place, (row, id) in enumerate(zip(rows, ids, strict=True)):
        event = read_event(ASK, {"x": row} if id is None else {"x": row, "id": id}, readers)
        if isinstance(event, Wrong):
            raise RequestRefused(within(f"[{place}]", event))
        events.append(event)
    replies = await happen(events)
    for place, reply in enumerate(replies):
        if reply.status != 200:
            raise RequestRefused(within(f"[{place}]", refused(reply.content["error"], reply.status)))
    contents = [reply.content for reply in replies]
    wanted = {one["name"] for one in request.get("outputs") or ()}
    said = {
        "model_name": name, "model_version": VERSION, **({"id": request["id"]} if "id" in request else {}),
        "parameters": {"ids": [one["id"] for one in contents], "events": [one["event"] for one in contents],
                       "verdict": contents[-1]["verdict"]},
        "outputs": [one for one in outputs(contents) if not wanted or one["name"] in wanted],
    }  # fmt: skip
    return Reply(JSON, msgspec.json.encode(said))


def rows_of(request: Any) -> tuple[list[Any], list[Any]]:
    """Return the objects of a request and their ids, None where it has none.

    One tensor (n, d) holds a row for each object; several of n values each hold a column, by name.

    Raises
    ------
    ValueError
        It is no request.

    Examples
    --------
    >>> rows_of({"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": [1, 2, 3, 4]}]})
    ([[1, 2], [3, 4]], [None, None])
    """
    if not isinstance(request, dict) or not isinstance(request.get("inputs"), list) or not request["inputs"]:
        raise ValueError("inputs must be a list of tensors, at least one")
    outputs = request.get("outputs") or []
    if not isinstance(outputs, list) or not all(isinstance(one, dict) and "name" in one for one in outputs):
        raise ValueError("outputs must be a list of objects with a name")
    tensors = [_tensor(place, one) for place, one in enumerate(request["inputs"])]
    names = [name for name, _, _ in tensors]
    if len(set(names)) < len(names):
        raise ValueError("inputs must have distinct names")
    rows: list[Any]
    shape: list[int]
    name, shape, data = tensors[0]
    if len(tensors) == 1 and len(shape) in (1, 2) and all(shape):
        n, d = shape if len(shape) == 2 else (1, shape[0])
        rows = [data[i * d : (i + 1) * d] for i in range(n)]
    else:
        n = shape[0] if shape else 0
        for name, each, _ in tensors:
            if each not in ([n], [n, 1]) or not n:
                raise ValueError(
                    f"inputs must have the shape [n] or [n, 1] each, or be one of [n, d], got {each} of {name!r}"
                )
        rows = [dict(zip(names, row, strict=True)) for row in zip(*(each for _, _, each in tensors), strict=True)]
    if len(rows) > MOST:
        raise ValueError(f"inputs must have at most {MOST} rows, got {len(rows)}")
    parameters = request.get("parameters") or {}
    ids = parameters.get("ids") if isinstance(parameters, dict) else None
    if ids is not None and (not isinstance(ids, list) or len(ids) != len(rows)):
        raise ValueError(f"parameters.ids must be a list of {len(rows)} ids, one for each row")
    return rows, ids or [None] * len(rows)


def _tensor(place: int, one: Any) -> tuple[str, list[int], list[Any]]:
    """Return name, shape and the flat values of a tensor."""
    where = f"inputs[{place}]"
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        raise ValueError(f"{where} must be an object with name, shape, datatype and data")
    shape: Any = one.get("shape")
    data: Any = one.get("data")
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise ValueError(f"{where}.shape must be a list of sizes")
    if one.get("datatype") not in TYPES:
        raise ValueError(f"{where}.datatype must be one of {', '.join(TYPES)}")
    for _ in range(3):
        if isinstance(data, list) and any(isinstance(part, list) for part in data):
            data = [value for part in data for value in (part if isinstance(part, list) else [part])]
    if (
        not isinstance(data, list)
        or len(data) != math.prod(shape)
        or any(isinstance(value, list | dict) for value in data)
    ):
        raise ValueError(f"{where}.data must hold {math.prod(shape)} values, as its shape says")
    return one["name"], shape, data


def outputs(contents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tensors of outlooks: PREDICTOR.KEY for all that each predictor says."""
    found = []
    for predictor, said in contents[0]["predictions"].items():
        for key in said:
            values = [one["predictions"][predictor][key] for one in contents]
            found.append({"name": f"{predictor}.{key}", **_described(values)})
    return found


def _described(values: list[Any]) -> dict[str, Any]:
    """Return values, one for each object, as a tensor; other values than numbers and text are written as JSON."""
    first = values[0]
    if isinstance(first, dict) and first and all(isinstance(one, dict) and list(one) == list(first) for one in values):
        inner = [value for one in values for value in one.values()]
        shape = [len(values), len(first)]
        labels = {"parameters": {"labels": [str(key) for key in first]}}
        if all(map(_number, inner)):
            return {"datatype": "FP64", "shape": shape, "data": inner, **labels}
        if all(isinstance(one, list | tuple) and len(one) == 2 and all(map(_number, one)) for one in inner):
            flat = [value for one in inner for value in one]
            return {"datatype": "FP64", "shape": [*shape, 2], "data": flat, **labels}
    if all(map(_number, values)):
        return {"datatype": "FP64", "shape": [len(values)], "data": values}
    data = [one if isinstance(one, str) else json.dumps(one) for one in values]
    return {"datatype": "BYTES", "shape": [len(values)], "data": data}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
