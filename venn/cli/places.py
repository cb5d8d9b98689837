"""Opens the source of messages that SOURCE names, with its settings."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import click
import numpy as np

import streams
from streams.loaded import CAR
from streams.messages import ErrorHandler, Reader
from streams.troubles import some_of
from venn.cli.columns import REPEATED, Columns
from venn.cli.errors import did_you_mean, in_shell
from venn.cli.modules import found_in_module, is_in_module
from venn.cli.options import DECLARED, HTTP, Config, SourceTable
from venn.cli.scorer import GivenModel

SCHEMES = {"redis": "redis", "rediss": "redis", "unix": "redis", "kafka": "kafka", "jsonl": "jsonl", "csv": "csv"}
FORMS = (
    "redis://HOST:PORT/DB?stream=NAME, kafka://SERVERS/TOPIC, jsonl:FILE, csv:FILE, -, MODULE:NAME, or data as of "
    "venn replay"
)
READING = ("features", "nominal", "ordinal", "skip", "fill", "merge_alike", "decimal", "thousands", "unit", "scaling")
OF_SERIES = ("value", "covariates")
WRITTEN = {
    "redis": "redis://...", "kafka": "kafka://...", "jsonl": "jsonl:FILE or -", "csv": "csv:FILE", "own": "MODULE:NAME",
    "file": "a CSV file", "data": "a named data set",
}  # fmt: skip
OWN = "own"  # kind of the sources that are a user's, as MODULE:NAME
REPLIED = ("predictions", "named", "time", "status", "answer", "error", "at")  # beside the key, in what is served
SHORTEST = 0.2  # seconds that Kafka's client needs for an answer


class SourcePlace(NamedTuple):
    """A source and what is known about it beforehand."""

    source: Any  #: a `Reader`; of requests their `Form`
    live: bool
    classes: tuple[Any, ...]
    width: int | None  #: number of encoded features, if it is declared
    features: tuple[str, ...] | None  #: their names, if these are
    data: str  #: name of the data set, if it is one
    handlers: Handlers
    columns: str  #: how they are read; of a data set also what stands in them


class Handlers:
    """Passes on bad and lost messages and unknown categories; a source is opened before its handlers exist."""

    def __init__(self) -> None:
        self.bad: ErrorHandler = _raise
        self.lost: ErrorHandler = _raise
        self.unknown: Callable[[str, Any], object] = lambda column, value: None


def _raise(error: Exception) -> object:
    raise error


def open_place(config: Config, model: GivenModel | None = None) -> SourcePlace:
    """Return the source that a configuration names; a live one is not read yet.

    A given `model` decides the form of objects; otherwise an encoder does.

    Raises
    ------
    click.ClickException
        There is no such source, or settings do not belong to it.
    """
    given = config.source
    where = config.where("source", "url")
    if given.url is None:
        raise click.UsageError(f"{where} must say where messages come from: {FORMS}")
    scheme, colon, rest = given.url.partition(":")
    kind = "jsonl" if given.url == "-" else SCHEMES.get(scheme, "") if colon else ""
    if not kind and is_in_module(given.url):
        kind = OWN
    if not kind and "://" in given.url:
        raise click.UsageError(f"{where} must be {FORMS}, got the scheme {scheme!r}{did_you_mean(scheme, SCHEMES)}")
    if not kind and config.series.value is not None:
        hint = f"; write {in_shell(f'csv:{given.url}')} for a file" if Path(given.url).exists() else ""
        raise click.UsageError(f"{where} must be live for a series, {FORMS}, got {given.url!r}{hint}")
    if not kind:
        return _data(config, given.url, model)
    check_source(
        config, kind, given.url if kind in ("jsonl", "csv", OWN) else f"a source of the kind {kind}"
    )  # no password
    path = rest if colon and kind != OWN else given.url
    if kind in ("jsonl", "csv") and not path:
        raise click.UsageError(f"{where} must name a file after {scheme}:, got {given.url!r}")
    return _live(config, kind, path, model)


def _live(config: Config, kind: str, path: str, model: GivenModel | None) -> SourcePlace:
    """Return a source of messages; `path` is what stands after the scheme."""
    given, numbers = config.source, config.where("source", "numbers")
    series = config.series
    if model is None and series.value is None and given.classes is None and not given.numbers:
        raise click.UsageError(
            f"{config.where('source', 'classes')} must be declared for a live source, such as no,yes; {numbers} where "
            "labels are numbers"
        )
    if given.classes is not None and given.numbers:
        raise click.UsageError(f"{numbers} does not go with {config.where('source', 'classes')}")
    handlers = Handlers()
    form = _form(config) if model is None else model.form(Path(path) if kind == "csv" else None)
    common: dict[str, Any] = {
        "form": form,
        "wait": max(config.run.linger, SHORTEST) if kind == "kafka" else config.run.linger,
        "name": given.name,
        "bad": lambda error: handlers.bad(error),
        "lost": lambda error: handlers.lost(error),
    }
    source: Any
    if kind == HTTP:
        source = form
    elif kind == "redis":
        source = _redis(config, common)
    elif kind == "kafka":
        source = _kafka(config, path, common)
    elif kind == OWN:
        mine = found_in_module(config.where("source", "url"), path, ("messages",))
        source = streams.OwnSource(mine, form=common["form"], bad=common["bad"], name=given.name)
    elif kind == "jsonl":
        source = streams.JSONLines(path, follow=not given.end, **common)
    else:
        source = streams.CSVRows(
            path, given.label if series.value is None else series.value, id=given.id, follow=not given.end,
            delimiter=given.delimiter, decimal=given.decimal, thousands=given.thousands, **common,
        )  # fmt: skip
    columns = _read_by(config)
    if model is not None:
        names = model.names or given.features
        return SourcePlace(source, True, model.classes, None, names, "", handlers, columns)
    return SourcePlace(source, True, given.classes or (), _width(given), _features(given), "", handlers, columns)


def open_requests(config: Config, model: GivenModel | None = None) -> SourcePlace:
    """Return what is known about messages that requests will bring; its `source` is their form.

    Raises
    ------
    click.ClickException
        Labels are not declared, or settings do not go together.
    """
    given, like = config.source, config.where("source", "like")
    if given.key in REPLIED:
        raise click.UsageError(f"{config.where('source', 'key')} must be no name that replies have, got {given.key!r}")
    if given.like is None:
        return _live(config, HTTP, "", model)
    for place in config.origin:
        if place[0] == "source" and place not in (("source", "like"), ("source", "key")):
            raise click.UsageError(f"{config.where(*place)} does not go with {like}, which says it")
    if model is not None:
        raise click.UsageError(f"{like} does not go with a model of your own, which says what it takes")
    names = [info.name for info in streams.datasets()]
    if given.like not in names:
        raise click.UsageError(f"{like} must be one of {', '.join(names)}, got {given.like!r}")
    stream = streams.load(given.like, scale=False)
    features = tuple(stream.features)
    schema = {name: streams.Ordinal(CAR[name]) for name in features} if features == tuple(CAR) else None
    try:
        form = streams.Form(features, stream.classes or "numbers", schema, key=given.key)
    except ValueError as error:
        raise click.ClickException(f"the source's form: {error}") from None
    return SourcePlace(form, True, stream.classes, len(features), features, "", Handlers(), f"like {given.like}")


def example_of(like: str) -> dict[str, Any]:
    """Return an object and a label of a named data set, as a request holds them."""
    stream = streams.load(like, scale=False)
    x, y = next(iter(stream))
    cells: list[Any] = x.tolist()
    if tuple(stream.features) == tuple(CAR):
        cells = [CAR[name][int(value)] for name, value in zip(CAR, x, strict=True)]
    return {"x": dict(zip(stream.features, cells, strict=True)), "y": y}


def _read_by(config: Config) -> str:
    """Return in words how columns are read; a resumed run compares them."""
    read = (config.source, READING, config.given("source")), (config.series, OF_SERIES, config.given("series"))
    found = [(name, getattr(table, name)) for table, names, given in read for name in names if name in given]
    return ", ".join(f"{name}={value!r}" for name, value in found)


def check_source(config: Config, kind: str, name: str) -> None:
    """Refuse options that do not belong to a kind of source; `name` is shown."""
    for key in config.given("source"):
        of = DECLARED["source"][key].option.of.split()
        if of and kind not in of and not config.without("source", key):
            ending = Path(name).suffix.removeprefix(".")
            live = kind == "file" and "csv" in of and ending in ("jsonl", "csv")  # a file of messages, by its bare name
            meant = f": for messages from it write --source {in_shell(f'{ending}:{name}')}" if live else ""
            heard = [WRITTEN[one] for one in of if one in WRITTEN and (config.source.url or one in ("file", "data"))]
            told = meant or (f": it goes with {', '.join(heard)}" if heard else "")
            raise click.UsageError(f"{config.where('source', key)} does not go with {name}{told}")


def _data(config: Config, data: str, model: GivenModel | None) -> SourcePlace:
    given = config.source
    scale = config.machine.scale
    stream = open_stream(data, config, seed_of(config), model)
    if given.steps is not None:
        stream = stream.take(min(given.steps, len(stream)))
    teacher: Any = streams.Delayed(given.delay) if given.delay else streams.Immediate()
    if given.missing:
        teacher = streams.Lazy(given.missing, teacher=teacher)
    source = streams.teach(stream, teacher)
    if scale is not None or model is not None:
        source.name += ", columns as they are"  # a run goes on with the same objects only
    if given.name is not None:
        source.name = given.name
    names, columns = tuple(stream.features), _fingerprint(stream)
    return SourcePlace(source, False, stream.classes, len(names), names, data, Handlers(), columns)


def _fingerprint(stream: streams.Stream) -> str:
    """Return a checksum of names, objects and labels in order."""
    X: Any = stream.X
    found = zlib.crc32(repr((list(stream.features), list(stream.classes))).encode())
    for array in (*((X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)), stream.y):
        content = repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()
        found = zlib.crc32(content, found)
    return f"{found:08x}"


def _form(config: Config) -> streams.Form:
    given, columns = config.source, Columns(config)
    if config.series.value is not None:
        return streams.Form(config.series.covariates, "values")
    for key, lacks, whole, form in (
        ("nominal", None, "the values of", "VALUE,VALUE"), ("fill", "median", "a number for", "NUMBER"),
    ):  # fmt: skip
        for column, told in (getattr(given, key) or {}).items():
            if told == lacks:
                raise click.UsageError(
                    f"{config.where('source', key)} must declare {whole} {column!r}, as the stream has not come yet: "
                    f"--{key} {in_shell(f'{column}={form}')}"
                )
    features = given.features or ()
    for key in REPEATED if features else ():
        for column in getattr(given, key) or ():
            if column not in features:
                near = did_you_mean(column, features) or f"; they are {some_of(list(features))}"
                raise click.UsageError(f"{config.where('source', key)} must name a feature, got {column!r}{near}")
    schema = columns.schema()
    scaling = None if given.scaling is None else streams.Scaling(given.scaling["mean"], given.scaling["deviation"])
    width = _width(given)
    if scaling is not None and width not in (None, len(scaling.mean)):
        raise click.UsageError(
            f"{config.where('source', 'scaling')} must have {width} numbers, one for each encoded feature, "
            f"got {len(scaling.mean)}"
        )
    try:
        classes: Any = "numbers" if given.numbers else given.classes
        return streams.Form(given.features, classes, schema or None, scaling, key=given.key)
    except (ValueError, TypeError) as error:
        raise click.ClickException(f"the source's form: {error}") from None


def _width(given: SourceTable) -> int | None:
    """Return the number of encoded features, None if it is not declared."""
    if given.scaling is not None and given.features is None:
        return len(given.scaling["mean"])
    features = _features(given)
    return None if features is None else len(features)


def _features(given: SourceTable) -> tuple[str, ...] | None:
    """Return the names of the encoded features, COLUMN=VALUE for those of a nominal column; None if not declared."""
    if given.features is None:
        return None
    nominal = given.nominal or {}
    return tuple(
        f"{name}={value}" if value else name
        for name in given.features
        if name not in (given.skip or ())
        for value in (nominal.get(name) or ("",))
    )


def _redis(config: Config, common: dict[str, Any]) -> Reader:
    where = config.where("source", "url")
    try:
        parts = urlsplit(config.source.url or "")
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise click.UsageError(f"{where} must be redis://HOST:PORT/DB?stream=NAME, got another") from None
    names = [value for key, value in query if key == "stream"]
    if len(names) != 1 or not names[0]:
        raise click.UsageError(f"{where} must name the stream, as redis://HOST:PORT/DB?stream=NAME, got no name or two")
    rest = parts._replace(query=urlencode([pair for pair in query if pair[0] != "stream"]))
    return streams.RedisStream(rest.geturl(), names[0], **common)


def _kafka(config: Config, path: str, common: dict[str, Any]) -> Reader:
    given, where = config.source, config.where("source", "url")
    servers, _, topic = path.removeprefix("//").partition("/")
    if not path.startswith("//") or not servers or not topic or "?" in topic:
        raise click.UsageError(f"{where} must be kafka://HOST:PORT[,HOST:PORT]/TOPIC, got {given.url!r}")
    return streams.KafkaTopic(servers, topic, group=given.group, config=given.kafka, **common)


def is_named(data: str) -> bool:
    """Whether DATA is a named data set."""
    return data in (info.name for info in streams.datasets())


def seed_of(config: Config, usual: int | None = None) -> int | None:
    """Return the seed of the order, None for that of the data; `usual` where nothing was given."""
    seed = config.source.shuffle
    return usual if seed is None else None if seed == "none" else int(seed)


def open_stream(data: str, config: Config, shuffle: int | None, model: GivenModel | None = None) -> streams.Stream:
    """Return the stream that DATA names; its columns are standardised over the whole file, unless --scale is given.

    For a given `model` they are as they come.
    """
    columns, named = Columns(config), is_named(data)
    whole = config.machine.scale is None and model is None
    check_source(config, *(("data", f"{data}, a named data set") if named else ("file", data)))
    if named:
        if any(info.name == data and info.where == "download" for info in streams.datasets()):
            click.echo(f"downloading {data}", err=True)
        stream = streams.load(data, shuffle=shuffle, scale=whole)
    elif Path(data).is_dir():
        raise click.ClickException(f"{data} is a folder: give a CSV file or a name that `venn datasets` lists")
    elif Path(data).exists():
        stream = columns.open(data, shuffle, whole) if model is None else model.stream(data, shuffle)
    elif os.sep in data or "." in data:
        bare = data.removeprefix("csv:")
        meant = f"; csv:FILE is a source of `venn run`, here give {bare}" if Path(bare).exists() else ""
        raise click.ClickException(f"no such file: {data}{meant}")
    else:
        near = did_you_mean(data, [info.name for info in streams.datasets()])
        raise click.ClickException(
            f"no data set and no file has the name {data!r}{near}; `venn datasets` lists the data sets"
        )
    if len(stream.classes) == 1:
        raise click.ClickException(f"{data} holds one label only, {stream.classes[0]!r}: there is nothing to predict")
    return stream
