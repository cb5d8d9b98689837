"""Every option, as it is declared: what it refuses, how it says so, and that --set and TOML mean the same by it."""

import math
import tomllib

import click
import pytest
from click.testing import CliRunner
from msgspec.inspect import FloatType, IntType, type_info

from venn import cli
from venn.cli.commands import COMMANDS
from venn.cli.config import configured, merge
from venn.cli.options import DECLARED, TABLES, offered

EACH = [pytest.param(one, id=f"{table}.{key}") for table, known in DECLARED.items() for key, one in known.items()]
NUMERIC = [param for param in EACH if isinstance(type_info(param.values[0].type), FloatType | IntType)]
JUNK = (
    "", "a b", "-1", "0", "1", "0.5", "2", "1e999", "nan", "-inf", "many", "true", "a=1", "=", "a,a", "a\0b", "null",
)  # fmt: skip
JUNK_OF_TOML = (True, -1, 0.5, math.nan, math.inf, "", "many", [], ["a", "a"], {}, {"a": []}, {"mean": [0]}, [1, 2])


def refusal(one, value, by_option):
    """Return what is said of a value that is refused; None if it is taken."""
    try:
        one.value(value, "here", by_option)
    except click.ClickException as error:
        return error


@pytest.mark.parametrize("one", EACH)
def test_what_is_refused_is_named_with_what_it_must_be(one):
    for by_option, junk in ((True, JUNK), (False, JUNK_OF_TOML)):
        must = (by_option and one.form.typed) or one.form.must
        values = [(value,) if by_option and one.form.repeated else value for value in junk]
        found = [error for value in values if (error := refusal(one, value, by_option))]
        for error in found:
            assert error.format_message().startswith(f"here must be {must}, got ")
            assert len(error.format_message().splitlines()) == 1
            assert error.exit_code == (2 if by_option else 1)
        assert found


@pytest.mark.parametrize("one", NUMERIC)
def test_numbers_end_at_their_bounds(one):
    of = type_info(one.type)
    kept = [bound for bound in (of.ge, of.le) if bound is not None]
    outside = [bound for bound in (of.gt, of.lt) if bound is not None]
    outside += [bound - 1 for bound in (of.ge,) if bound is not None] + [bound + 1 for bound in (of.le,) if bound]
    assert outside
    for bound in kept:
        assert one.value(str(bound), "", True) == one.value(bound, "", False) == bound
    for bound in outside:
        for value, by_option in ((str(bound), True), (bound, False)):
            with pytest.raises(click.ClickException, match="must be a"):
                one.value(value, "", by_option)


@pytest.mark.parametrize("one", EACH)
def test_a_default_is_a_value_and_is_told(one):
    if isinstance(one.default, int | float | str):
        assert one.value(one.default, "", False) == one.default
        assert one.default is False or "[default: " in one.help
    else:
        assert one.default is None
    assert one.help[0].isupper()
    assert all(place.split(".")[1] in DECLARED[place.split(".")[0]] for place in one.option.needs)


@pytest.mark.parametrize("command", [name for name in COMMANDS if offered(name)])
def test_every_option_is_in_the_help_or_named_by_it(command):
    said = " ".join(CliRunner().invoke(cli.main, [command, "--help"], terminal_width=200).output.split())
    names = [one.flag(command) for known in offered(command).values() for one in known.values()]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.removeprefix("--set ") in said


def test_every_option_is_taken_by_some_command():
    taken = {(one.table, one.key) for name in COMMANDS for known in offered(name).values() for one in known.values()}
    assert taken == {(table, key) for table, known in DECLARED.items() for key in known}
    assert list(DECLARED) == list(TABLES)


SAID = [
    ("run.batch=7", "run = {batch = 7}"), ("machine.coef0=.5", "machine = {coef0 = 0.5}"),
    ("monitor.drift=false", "monitor = {drift = false}"), ("source.kafka={a = 1}", "source = {kafka = {a = 1}}"),
    ("source.scaling={mean = [0], deviation = [1]}", "source = {scaling = {mean = [0], deviation = [1]}}"),
    ("source.nominal=a=x,y", 'source = {nominal = {a = ["x", "y"]}}'),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "toml"), SAID)
def test_what_is_set_is_what_a_file_says(setting, toml):
    found = []

    @configured("run")
    def command(config):
        found.append(config)

    assert command.main(["--set", setting], standalone_mode=False) is None
    written = merge("run", tomllib.loads(toml), "run.toml", {})
    assert all(getattr(found[0], table) == getattr(written, table) for table in TABLES)
    (place,) = found[0].origin
    assert found[0].where(*place) == f"--set {'.'.join(place)}"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["run.bacth=7"], "--set must be TABLE.KEY=VALUE, as run.out=..., got 'run.bacth=7' (did you mean run.batch"),
        (["run.batch"], "--set run.batch must be an integer from 1 to 100000: Largest number of messages in a"),
        (["run.batch=0"], "--set run.batch must be an integer from 1 to 100000, got '0'"),
        (["run.batch=1", "run.batch=2"], "--set run.batch must be given once, got 'run.batch=2', too"),
        (["source.kafka=={"], "--set source.kafka must be a table of settings, got "),
        (["--batch", "2"], "--batch has no option of its own: write --set run.batch=VALUE"),
        (["view.once=1"], "--set must be TABLE.KEY=VALUE, "),
        (["machine.C=1", "--C", "2"], "--C and --set machine.C say the same: give one"),
    ],
)
def test_what_is_set_wrongly(settings, said):
    words = [word for one in settings for word in ([one] if one.startswith("-") or one == "2" else ["--set", one])]
    result = CliRunner().invoke(cli.main, ["run", *words])
    assert result.exit_code == 2
    assert said in result.output
