"""All options, declared once: each is a field of a table, in TOML, on the command line and in a command's `Config`.

A field's type says what a value may be; an `Option` beside it says what it is for, and which commands take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import fields

from streams.checks import MISSING
from venn.cli.numbers import MOST_CLASSES
from venn.cli.numbers import PREDICTORS as OF_NUMBERS
from venn.cli.option_forms import Option, declared
from venn.cli.option_types import (
    Address,
    Ahead,
    AtLeast1,
    Column,
    Columns,
    Count,
    Delimiter,
    File,
    Fills,
    Folder,
    Labels,
    Names,
    NotNegative,
    Port,
    Positive,
    Ripe,
    Scale,
    Scorer,
    Seasons,
    Seed,
    Settings,
    Text,
    Texts,
    Thousands,
    Units,
    Values,
    Window,
    Words,
)
from venn.cli.predictors import FORECASTER, PREDICTORS
from venn.show.notify import EVERY

READS, SERVE, MONITOR, SERVERS = ("run",), ("serve",), ("monitor",), ("monitor", "metrics")
RUN = (*READS, *SERVE)  # the loop, over a source or over requests
LOOKS = ("replay", "compare", "monitor")  # at a stream that ends
FORECASTS = ("replay", *RUN)  # the next values of a series
ALL = (*RUN, *LOOKS)
HTTP = "http"  # kind of the requests of `venn serve`
# Kinds of sources; there are also file, a CSV file read whole, and data, a name.
LIVE = f"redis kafka jsonl csv own {HTTP}"
SERVED = ("view.serve", "run.metrics_port")

# fmt: off


class OptionTable(Struct, frozen=True, kw_only=True):
    """A table of options."""


class RunTable(OptionTable, frozen=True, kw_only=True):
    """How the loop runs."""

    out: Annotated[File, Option("Where predictions go as JSON lines, appended; - is stdout.", READS)] = "-"
    batch: Annotated[int, Meta(ge=1, le=100_000), Option(
        "Largest number of messages in a transaction.", rare=RUN)] = 512
    waiting: Annotated[int, Meta(ge=1, le=1_000_000), Option(
        "Largest number of messages that wait; beyond it a request is told to come again.", SERVE, rare=SERVE)] = 10_000
    linger: Annotated[float, Meta(ge=0.01, le=60), Option(
        "Seconds that a message waits for its transaction, about, at most.", rare=RUN)] = 0.2
    skip_bad: Annotated[bool, Option("Count and skip messages that cannot be read.", READS)] = False
    skip_lost: Annotated[bool, Option("Go on where messages were lost before they were read.", READS)] = False
    progress: Annotated[bool, Option("Show progress on stderr.", READS)] = True
    quiet: Annotated[bool, Option("Say nothing on stderr but errors.")] = False
    metrics_port: Annotated[Annotated[int, Meta(ge=1, le=65535)] | None, Option(
        "Serve metrics to Prometheus at this port.", READS)] = None


class SourceTable(OptionTable, frozen=True, kw_only=True):
    """Where examples or messages come from, and their form."""

    url: Annotated[Text | None, Option("Where messages come from, see above.", RUN, "source")] = None
    name: Annotated[Text | None, Option(
        "Name of the source in the journal.  [default: made from its address]", RUN)] = None
    new: Annotated[bool, Option(
        "Let a journal that has read other sources continue with this one.", RUN, "new-source")] = False
    classes: Annotated[Labels | None, Option(
        "The labels; integers where all look like integers. The configuration file also takes other kinds, as "
        'classes = ["0", "1"] or [true, false].', RUN, of=LIVE)] = None
    like: Annotated[Text | None, Option(
        "Take features and labels from a named data set, to try it out.", SERVE)] = None
    numbers: Annotated[bool | None, Option(
        "Whether labels are numbers.  [default: of a CSV file that is read whole, if all are, and some not whole, or "
        f"more than {MOST_CLASSES} differ]", of=f"{LIVE} file")] = None
    features: Annotated[Texts | None, Option("Names of an object's values, in order.", RUN, of=LIVE)] = None
    key: Annotated[Column | None, Option(
        "Name of the value, beside id, x and y, that says to which of many streams a message belongs: each has a model "
        "of its own, and --journal is the folder of all.", RUN, of=f"jsonl redis kafka {HTTP}")] = None
    label: Annotated[Column | None, Option("Column of the label in CSV.", of="csv file")] = None
    id: Annotated[Column | None, Option("Column of the id in CSV.", RUN, of="csv")] = None
    nominal: Annotated[Values | None, Option(
        "A column of words; only the given values may occur. A file that is read whole may do without them: then empty "
        "fields and ? are values, too. Repeatable.", of=f"{LIVE} file")] = None
    ordinal: Annotated[Values | None, Option(
        "A column of words with an order, from low to high; repeatable.", of=f"{LIVE} file")] = None
    skip: Annotated[Columns | None, Option("A column to leave out, repeatable.", of=f"{LIVE} file")] = None
    fill: Annotated[Fills | None, Option(
        f"A column of numbers, and what replaces missing ones: empty fields, {', '.join(MISSING[1:7])} and the like; "
        "the median only in a file that is read whole; repeatable.", of=f"{LIVE} file")] = None
    unit: Annotated[Units | None, Option(
        "A column of numbers with a unit, or a currency, before or behind them, or %, which is left out; repeatable.",
        of=f"{LIVE} file")] = None
    missing_texts: Annotated[Texts | None, Option(
        "Further texts that mean a missing value in a CSV file, as the empty field does.", of="file")] = None
    drop_unlabelled: Annotated[bool, Option("Leave out rows of a CSV file whose label is missing.", of="file")] = False
    merge_alike: Annotated[bool, Option(
        "Take labels, and nominal values, that are the same written differently as one: they differ in blanks, "
        "capitals, a dot at the end, the form of a number or the Unicode form.", of="file")] = False
    delimiter: Annotated[Delimiter, Option("Separator of CSV fields, or tab.", of="csv file")] = ","
    decimal: Annotated[Literal[".", ","], Option("What stands before decimals in CSV.", of="csv file")] = "."
    thousands: Annotated[Thousands | None, Option(
        "What stands between groups of digits in CSV; a blank is any.", of="csv file")] = None
    scaling: Annotated[Scale | None, Option("Scale of the encoded features, known beforehand.", RUN, of=LIVE)] = None
    end: Annotated[bool, Option("Stop at the end of the file.", RUN, of="jsonl csv")] = False
    group: Annotated[Text | None, Option(
        "Group under which a Kafka broker receives the run's position.", RUN, rare=RUN, of="kafka")] = None
    kafka: Annotated[Settings | None, Option("Settings of Kafka's client.", RUN, of="kafka")] = None
    delay: Annotated[Count | None, Option(
        "Questions between a data set's question and its answer.  [default: 0]", RUN, of="file data")] = None
    missing: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, Option(
        "Share of a data set's answers that never come.  [default: 0]", RUN, of="file data")] = None
    shuffle: Annotated[Seed | None, Option(
        "Seed of another order of a data set or file; none keeps its own.  [default: none; venn replay: 0 for a named "
        "data set]", (*RUN, "replay", "monitor"), of="file data")] = None
    steps: Annotated[AtLeast1 | None, Option(
        "Stop after so many examples of a data set or file.", of="file data")] = None


class PredictorTable(OptionTable, frozen=True, kw_only=True):
    """Who predicts."""

    names: Annotated[Names | None, Option(
        f"Separated by commas, of {', '.join(PREDICTORS)}; where labels are numbers, of {', '.join(OF_NUMBERS)}.  "
        f"[default: {FORECASTER}; with --window those that can forget]", name="predictors")] = None
    adaptive: Annotated[bool, Option(
        "Also predict sets, or intervals for numbers, whose long-run error rate holds on any stream, from conformal "
        "ones.")] = False
    groups: Annotated[Column | None, Option(
        "Compare each example with those of equal value in this column only: what is guaranteed then holds in each "
        "group. For conformal, Venn and Venn-Abers predictors.")] = None


    scorer: Annotated[Scorer | None, Option(
        "A fitted model of your own, calibrated as the stream goes: MODULE:NAME, of a model or of a function that "
        "returns it, or FILE.skops. It gets the columns as they come.")] = None
    scorer_trusts: Annotated[Texts | None, Option(
        "Types in FILE.skops that you trust, beside those that are known to do no harm.",
        needs=("predictor.scorer",))] = None
    scorer_runs_code: Annotated[bool, Option(
        "Also take a scorer from FILE.joblib, .pkl or .pickle. To load such a file runs code that it holds: only from "
        "those whom you would let run programs here.", needs=("predictor.scorer",))] = False
    new_scorer: Annotated[bool, Option(
        "Let a journal go on with another scorer than before: calibration then begins anew.", RUN,
        needs=("predictor.scorer",))] = False


    answer_error: Annotated[Annotated[float, Meta(gt=0, lt=1)] | None, Option(
        "Answer so that at most this share of the answers, and 5 more, is wrong, whatever comes. Each prediction then "
        "has an answer: null where it abstains.", READS)] = None
    answer_allowance: Annotated[Annotated[float, Meta(ge=1)], Option(
        "How many more answers may be wrong.", READS, rare=READS, needs=("predictor.answer_error",))] = 5.0
    answer_unknown: Annotated[Literal["wrong", "right", "out"], Option(
        "What an answer counts as whose label never comes, as where it is not wanted: wrong, right, or never given.",
        READS, rare=READS, needs=("predictor.answer_error",))] = "wrong"
    answer_width: Annotated[Positive | None, Option(
        "Of numbers: answer with an interval that is narrower than this.", READS, rare=READS,
        needs=("predictor.answer_error",))] = None


class MachineTable(OptionTable, frozen=True, kw_only=True):
    """What the predictors read."""

    kernel: Annotated[Literal["laplacian", "rbf", "linear", "poly"] | None, Option(
        "The laplacian one has several widths.  [default: it; rbf where --gamma is given, and on car and wine_red]"
    )] = None
    gamma: Annotated[Positive | None, Option(
        "For the rbf and poly kernels.  [default: 1 / encoded features; of rbf by --tune, where it is]")] = None
    degree: Annotated[Annotated[int, Meta(ge=1, le=100)] | None, Option(
        "For the poly kernel.  [default: 3]", rare=ALL)] = None
    coef0: Annotated[NotNegative | None, Option("For the poly kernel.  [default: 1]", rare=ALL)] = None
    C: Annotated[Positive | None, Option(
        "Penalty of the machines.  [default: 10; by --tune, where it is]")] = None
    tune: Annotated[Count | None, Option(
        "Number of first examples, used only to choose C, and gamma of rbf; 0 means C = 10, 1 / encoded features.  "
        "[default: a fifth of them, at most 200, none below 100; on car and wine_red what is known]", LOOKS)] = None
    scale: Annotated[bool | None, Option(
        "Scale each column by the first 30 examples. Live, the forecaster does so by itself, so do other predictors "
        "on the default kernel; these examples are then in no bag. --no-scale takes columns as they come, the "
        "forecaster too. A data set or CSV file given by name is by default standardised as a whole when it is loaded."
        )] = None
    window: Annotated[Window | None, Option(
        "Number of latest examples that a machine holds.  [default: all]", RUN)] = None


class MonitorTable(OptionTable, frozen=True, kw_only=True):
    """When an alarm rings, and what it does."""

    level: Annotated[float, Meta(gt=0, lt=1), Option(
        "Chance that any predictor ever has a false alarm: each has its share.")] = 0.01
    run_length: Annotated[float, Meta(gt=1), Option(
        "Mean number of examples to a false alarm of the detectors for repeated changes.", rare=ALL)] = 100_000.0
    floor: Annotated[Annotated[float, Meta(gt=0, lt=1)] | None, Option(
        "Least accuracy of the first predictor, of a forecaster its forecast; of numbers, least share inside the "
        "interval at 0.05. An alarm rings when it is not kept, whatever was claimed; venn monitor then ends with code "
        "3. It has a level of .01 of its own.", (*RUN, *MONITOR, "replay"))] = None
    conformal: Annotated[bool, Option(
        "Also conformal predictors on the machines of Venn and Venn-Abers ones: their p-values ring sooner.")] = True
    drift: Annotated[bool, Option(
        "Also watch the objects by themselves, with a share of the level: it rings before labels come.")] = True
    restart_on_alarm: Annotated[bool, Option(
        "Forget the window when an alarm rings.", RUN, needs=("machine.window",))] = False
    on_alarm: Annotated[Words | None, Option(
        "Run this as a change begins, is known, and ends, without a shell; it gets it as JSON on its standard input.",
        RUN)] = None
    alarm_webhook: Annotated[Address | None, Option("Post the same to this address as JSON.", RUN)] = None
    alarm_every: Annotated[NotNegative, Option(
        "Least seconds from one notification of the same watchers to the next.", RUN, rare=RUN,
        needs=("monitor.on_alarm", "monitor.alarm_webhook"))] = EVERY
    keep: Annotated[Count | None, Option(
        "Number of latest examples that --restart-on-alarm keeps.  [default: 0]", RUN,
        needs=("monitor.restart_on_alarm",))] = None


class JournalTable(OptionTable, frozen=True, kw_only=True):
    """What is kept."""

    path: Annotated[File | None, Option("The journal; a run that it holds is continued.", name="journal")] = None
    durable: Annotated[bool, Option("Write each transaction to disk at once: safe from power loss, slower.")] = False
    every: Annotated[AtLeast1, Option("Events from one checkpoint to the next.", rare=RUN)] = 1000
    patience: Annotated[AtLeast1 | None, Option("Give up a question when so many later ones have been asked.")] = None
    patience_seconds: Annotated[Positive | None, Option(
        "Give up a question after so many seconds.", READS, rare=READS)] = None
    ripe: Annotated[Ripe | None, Option(
        "Let labels count only when so many later questions have been asked, or so much time has passed, by the times "
        '"at" of the messages, or else the clock.', READS)] = None
    silent: Annotated[Text | None, Option(
        "Label of a question of which nothing is heard until then.  [default: it is given up]", READS,
        needs=("journal.ripe",))] = None
    labels_by_lot: Annotated[Annotated[float, Meta(gt=0, le=1)] | None, Option(
        "Ask for the label of each question with this chance: a prediction then says whether it is wanted.",
        READS)] = None


class ViewTable(OptionTable, frozen=True, kw_only=True):
    """What a command shows and writes."""

    shuffles: Annotated[AtLeast1, Option("Orders of each data set: seeds 0, 1, ...", ("compare",))] = 3
    window: Annotated[Window, Option(
        "Number of latest examples in the means shown; nothing is forgotten.", MONITOR)] = 1000
    out: Annotated[Folder | None, Option(
        "Folder for the record and the figures.  [default: runs/DATA; venn compare: runs/compare; venn monitor: none, "
        "and nothing is written]", LOOKS)] = None
    json: Annotated[bool, Option("Print one JSON object; everything else goes to stderr.", LOOKS)] = False
    progress: Annotated[bool | None, Option("Show progress.  [default: in a terminal]", LOOKS)] = None
    once: Annotated[bool, Option("Show a journal as it is now, or print its metrics, and end.", SERVERS)] = False
    serve: Annotated[bool, Option("Serve a page that shows a journal, which may come later.", MONITOR)] = False


class SeriesTable(OptionTable, frozen=True, kw_only=True):
    """A series, whose next values are forecast."""

    value: Annotated[Column | None, Option(
        "Column of values in order of time: forecasts of the next ones, not of labels. Of messages in JSON, what y is.",
        FORECASTS, "series")] = None
    season: Annotated[Seasons | None, Option(
        "How many values a period has, such as 48 or 48,336; 1 for none.  [default: found from the values]",
        FORECASTS, needs=("series.value",))] = None
    horizon: Annotated[Ahead, Option("Steps ahead.", FORECASTS, needs=("series.value",))] = 24
    covariates: Annotated[Columns | None, Option(
        "Column of numbers that are known before their value, repeatable.", FORECASTS,
        needs=("series.value",))] = None


class AccessTable(OptionTable, frozen=True, kw_only=True):
    """Where a page or metrics are served, and who may read them."""

    port: Annotated[Port | None, Option(
        "Port to listen at.  [default: 5006 of the page, 9477 of metrics, 8000 of a model]", (*SERVERS, *SERVE),
        needs=("view.serve",))] = None
    host: Annotated[Text, Option("Address to listen at.", rare=READS, needs=SERVED)] = "127.0.0.1"
    allow_host: Annotated[Columns | None, Option(
        "Another name, NAME or NAME:PORT, under which it may be asked, as behind a proxy, repeatable.  [default: "
        "localhost, 127.0.0.1, [::1] and the host, with the port]", rare=READS, needs=SERVED)] = None
    token: Annotated[Text | None, Option(
        "Who does not know it reads nothing. Other users of this machine can see it in a command line.  [default: "
        "$VENN_TOKEN, or none]", rare=READS, needs=SERVED)] = None
    token_file: Annotated[File | None, Option(
        "The same, from the first line of a file.", rare=READS, needs=SERVED)] = None
    no_token: Annotated[bool, Option(
        "Ask for no token even where other machines can connect.", rare=READS, needs=SERVED)] = False
    root_path: Annotated[Text | None, Option(
        "Path under which a proxy shows it, such as /models/churn.", SERVE)] = None
    certfile: Annotated[File | None, Option("Certificate, for https.", SERVE)] = None
    keyfile: Annotated[File | None, Option(
        "Its key, if it is in another file.", SERVE, needs=("access.certfile",))] = None


# fmt: on


class Config(Struct, frozen=True):
    """All options by table, each with the commands that take it. `origin` says where each value comes from."""

    run: Annotated[RunTable, RUN] = RunTable()
    source: Annotated[SourceTable, ALL] = SourceTable()
    predictor: Annotated[PredictorTable, ALL] = PredictorTable()
    machine: Annotated[MachineTable, ALL] = MachineTable()
    monitor: Annotated[MonitorTable, (*RUN, *MONITOR)] = MonitorTable()
    journal: Annotated[JournalTable, RUN] = JournalTable()
    view: Annotated[ViewTable, ()] = ViewTable()
    series: Annotated[SeriesTable, ()] = SeriesTable()
    access: Annotated[AccessTable, (*RUN, *SERVERS)] = AccessTable()
    origin: Mapping[tuple[str, str], str] = {}

    def where(self, table: str, key: str) -> str:
        """Return the name that a user knows a key by: its option, or its place in the file."""
        return self.origin.get((table, key)) or DECLARED[table][key].flag()

    def given(self, table: str) -> list[str]:
        """Return the keys of a table that were given."""
        return [key for place, key in self.origin if place == table]

    def without(self, table: str, key: str) -> bool:
        """Whether a value counts as not given; 0 counts as given."""
        value = getattr(getattr(self, table), key)
        return value is None or value is False


_TABLES = [(one.name, one.type) for one in fields(Config) if one.name != "origin"]
#: All options, by table and key.
DECLARED = {name: declared(name, kind.__origin__) for name, kind in _TABLES}
TABLES: dict[str, type[OptionTable]] = {name: kind.__origin__ for name, kind in _TABLES}


def offered(command: str) -> dict[str, dict[str, Any]]:
    """Return the options that a command takes, by table and key."""
    found = {
        name: {key: one for key, one in DECLARED[name].items() if command in (one.option.on or kind.__metadata__[0])}
        for name, kind in _TABLES
    }
    if command in SERVE:  # messages come by requests, so other options of a source do not apply
        found["source"] = {
            key: one for key, one in found["source"].items() if HTTP in one.option.of.split() or one.option.on == SERVE
        }
    return {name: keys for name, keys in found.items() if keys}
