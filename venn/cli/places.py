"""Sources of messages: opens what SOURCE names, with its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import click

import streams
from streams.messages import ErrorHandler, Reader
from streams.tables import some_of
from venn.cli.columns import KEYS, Columns
from venn.cli.config import Config, SourceTable
from venn.cli.errors import did_you_mean, in_shell
from venn.cli.setting import open_stream

EVERY = ("url", "name", "new")
MADE = (*EVERY, "features", "classes", "numbers", "nominal", "ordinal", "skip", "fill", "scaling")
BY_KIND: dict[str, tuple[str, ...]] = {
    "redis": MADE,
    "kafka": (*MADE, "group", "kafka"),
    "jsonl": (*MADE, "end"),
    "csv": (*MADE, "end", "label", "id", "delimiter", "decimal"),
    "data": (*EVERY, *KEYS, "numbers", "delay", "missing", "shuffle", "steps"),
}
SCHEMES = {"redis": "redis", "rediss": "redis", "unix": "redis", "kafka": "kafka", "jsonl": "jsonl", "csv": "csv"}
FORMS = "redis://HOST:PORT/DB?stream=NAME, kafka://SERVERS/TOPIC, jsonl:FILE, csv:FILE, -, or data as of venn replay"
SHORTEST = 0.2  # seconds that Kafka's client needs for an answer


class Place(NamedTuple):
    """A source and what is known about it beforehand."""

    source: Reader
    live: bool
    classes: tuple[Any, ...]
    width: int | None  #: number of encoded features, if it is declared
    features: tuple[str, ...] | None  #: their names, if these are
    data: str  #: name of the data set, if it is one
    handlers: Handlers


class Handlers:
    """Passes bad and lost messages on: a source is opened before the object that handles them exists."""

    def __init__(self) -> None:
        self.bad: ErrorHandler = _raise
        self.lost: ErrorHandler = _raise


def _raise(error: Exception) -> object:
    raise error


def open_place(config: Config) -> Place:
    """Return the source that a configuration names; a live one is not read yet.

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
    kind = "jsonl" if given.url == "-" else SCHEMES.get(scheme, "data") if colon else "data"
    if kind == "data" and "://" in given.url:
        raise click.UsageError(f"{where} must be {FORMS}, got the scheme {scheme!r}{did_you_mean(scheme, SCHEMES)}")
    for key in config.given("source"):
        value = getattr(given, key)
        if key not in BY_KIND[kind] and value is not None and value is not False:  # a seed of 0 is a seed
            meant = _scheme_meant(given.url) if kind == "data" and key in (*MADE, "end", "id") else ""
            raise click.UsageError(f"{config.where('source', key)} does not go with {_name(given.url, kind)}{meant}")
    if kind == "data":
        return _data(config, given.url)
    path = rest if colon else given.url
    if kind in ("jsonl", "csv") and not path:
        raise click.UsageError(f"{where} must name a file after {scheme}:, got {given.url!r}")
    return _live(config, kind, path)


def _live(config: Config, kind: str, path: str) -> Place:
    """Return a source of messages; `path` is what stands after the scheme."""
    given, numbers = config.source, config.where("source", "numbers")
    if given.classes is None and not given.numbers:
        holds = Columns(config).declared(path) if kind == "csv" else []
        found = f"\nfor what {path} holds now, try: {' '.join(holds)}" if holds else ""
        raise click.UsageError(
            f"{config.where('source', 'classes')} must be declared for a live source, such as no,yes; {numbers} where "
            f"labels are numbers{found}"
        )
    if given.classes is not None and given.numbers:
        raise click.UsageError(f"{numbers} does not go with {config.where('source', 'classes')}")
    handlers = Handlers()
    common: dict[str, Any] = {
        "form": _form(config),
        "wait": max(config.run.linger, SHORTEST) if kind == "kafka" else config.run.linger,
        "name": given.name,
        "bad": lambda error: handlers.bad(error),
        "lost": lambda error: handlers.lost(error),
    }
    source: Reader
    if kind == "redis":
        source = _redis(config, common)
    elif kind == "kafka":
        source = _kafka(config, path, common)
    elif kind == "jsonl":
        source = streams.JSONLines(path, follow=not given.end, **common)
    else:
        source = streams.CSVRows(
            path, given.label, id=given.id, follow=not given.end, delimiter=given.delimiter,
            decimal=given.decimal, **common,
        )  # fmt: skip
    return Place(source, True, given.classes or (), _width(given), _features(given), "", handlers)


def _name(url: str, kind: str) -> str:
    """Return a name of the source that may be shown: without a password."""
    return url if kind in ("data", "jsonl", "csv") else f"a source of the kind {kind}"


def _scheme_meant(path: str) -> str:
    """Return what to write for a file of messages that was given by its bare name; nothing for other names."""
    ending = Path(path).suffix.removeprefix(".")
    return f": for messages from it write --source {ending}:{path}" if ending in ("jsonl", "csv") else ""


def _data(config: Config, data: str) -> Place:
    given = config.source
    scale = config.machine.scale
    stream = open_stream(data, Columns(config), given.shuffle, whole=scale is None)
    if given.steps is not None:
        stream = stream.take(min(given.steps, len(stream)))
    teacher: Any = streams.Delayed(given.delay) if given.delay else streams.Immediate()
    if given.missing:
        teacher = streams.Lazy(given.missing, teacher=teacher)
    source = streams.teach(stream, teacher)
    if scale is not None:
        source.name += ", columns as they are"  # a run goes on with the same objects only
    if given.name is not None:
        source.name = given.name
    return Place(source, False, stream.classes, len(stream.features), tuple(stream.features), data, Handlers())


def _form(config: Config) -> streams.Form:
    given, columns = config.source, Columns(config)
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
    for key in ("nominal", "ordinal", "skip", "fill") if features else ():
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
        return streams.Form(given.features, "numbers" if given.numbers else given.classes, schema or None, scaling)
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
