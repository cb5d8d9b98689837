"""Makes a `Config` from a TOML file and a command line, by the declarations in `venn.cli.options`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from venn.cli.errors import did_you_mean
from venn.cli.option_forms import Declared, short
from venn.cli.options import ALL, DECLARED, TABLES, Config, offered


def merge(command: str, file: Mapping[str, Any], path: str, given: Mapping[tuple[str, str], tuple[str, Any]]) -> Config:
    """Merge and check a file's tables and the command line's options, which take precedence.

    Parameters
    ----------
    command : str
        Which takes the options.
    file : mapping
        Tables, as `read_toml` returns them.
    path : str
        The file's path, for errors.
    given : mapping
        By table and key how the command line names an option, and its value.

    Raises
    ------
    click.ClickException
        An unknown table or key, or a wrong value: the message names it, the requirement and the value.
    """
    known = offered(command)
    for table, value in file.items():
        if table not in known:
            homes = [name for name, keys in known.items() if table in keys]
            hint = f"; the key {table} belongs in [{' or ['.join(homes)}]" if homes else did_you_mean(table, known)
            raise click.ClickException(f"{path} must have tables of {', '.join(known)}, got {short(table)}{hint}")
        if not isinstance(value, dict):
            raise click.ClickException(f"{path}: {table} must be a table, [{table}], got {short(value)}")
        for key in value:
            if key not in known[table]:
                hint = did_you_mean(key, known[table]) or f"; there is {', '.join(known[table])}"
                raise click.ClickException(f"{path}, [{table}] has no key {short(key)}{hint}")
    origin: dict[tuple[str, str], str] = {}
    tables: dict[str, Any] = {}
    for table, keys in known.items():
        values = {}
        for key, one in keys.items():
            if (table, key) in given:
                origin[table, key], values[key] = given[table, key]
            elif key in file.get(table, {}):
                origin[table, key] = f"{path}, [{table}] {key}"
                values[key] = one.value(file[table][key], origin[table, key], False)
        tables[table] = TABLES[table](**values)
    config = Config(**tables, origin=origin)
    for table, key in origin:
        needs = [need.split(".") for need in DECLARED[table][key].option.needs]
        needs = [need for need in needs if need[1] in known.get(need[0], {})]
        if needs and all(config.without(*need) for need in needs) and not config.without(table, key):
            others = " or ".join(config.where(*need) for need in needs)
            raise click.UsageError(f"{config.where(table, key)} needs {others}")
    return config


def read_toml(path: str) -> dict[str, Any]:
    """Return the tables of a file; any error in it is one line."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path} must be UTF-8: {error}") from None
    except ValueError as error:
        raise click.ClickException(f"{path} must be TOML: {error}") from None
    except RecursionError:
        raise click.ClickException(f"{path} must be TOML that is not nested this deeply") from None


# ---------------------------------------------------------------- the command line


class ConfiguredCommand(click.Command):
    """A command that says, for an unknown option, how to give it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            for one in (one for keys in offered(self.name or "").values() for one in keys.values()):
                if one.flag() == error.option_name:
                    instead = f"{one.flag(self.name or '')}=VALUE"
                    raise click.UsageError(
                        f"{error.option_name} has no option of its own: write {instead}", ctx
                    ) from None
            others = [
                f"venn {command}" for command in (*ALL, "metrics")
                if any(one.flag() == error.option_name for keys in offered(command).values() for one in keys.values())
            ]  # fmt: skip
            if others:
                text = f"{error.option_name} is an option of {' and '.join(others)}, not of venn {self.name}"
                raise click.UsageError(text, ctx) from None
            raise
        except click.UsageError as error:
            if self.name == "run" and "unexpected extra argument" in error.message:
                example = "name a source by --source, as in --source mine.csv"
                raise click.UsageError(f"{error.message}: {example}", ctx) from None
            raise


def configured(command: str) -> Callable[[Callable[..., None]], ConfiguredCommand]:
    """Make a command of a function, which gets its options as a `Config`, the argument `config`."""
    known = [one for keys in offered(command).values() for one in keys.values()]
    flags = {f"{one.table}_{one.key}": one for one in known if not one.flag(command).startswith("--set")}
    rare = [f"{one.table}.{one.key}" for one in known if one not in flags.values()]

    def add(function: Callable[..., None]) -> ConfiguredCommand:
        @wraps(function)
        def called(
            *args: Any, given: dict[tuple[str, str], tuple[str, Any]], toml: str | None = None, **others: Any
        ) -> None:
            for name, one in flags.items():
                place, value = (one.table, one.key), others.pop(name)
                if value not in (None, ()):
                    if place in given:
                        raise click.UsageError(f"{one.flag()} and {given[place][0]} say the same: give one")
                    given[place] = one.flag(), value
            config = merge(command, {} if toml is None else read_toml(toml), toml or "", given)
            return function(*args, config=config, **others)

        also = f" {', '.join(rare)} have no option of their own." if rare else ""
        made = click.option(
            "--set", "given", multiple=True, metavar="TABLE.KEY=VALUE",
            callback=lambda context, option, texts: _settings(command, texts),
            help=f"Any of these settings, by its place in the TOML file, repeatable.{also} --set TABLE.KEY alone says "
            "what it is.",
        )(called)  # fmt: skip
        for name, one in reversed(flags.items()):
            flag, form = one.flag(), one.form
            kind: dict[str, Any] = {"type": str, "metavar": form.metavar, "multiple": form.repeated}
            if form.must == "true or false":
                flag += "" if one.default is False else f"/--no-{flag.removeprefix('--')}"
                kind = {"is_flag": True}
            made = click.option(flag, name, default=None, help=one.help, callback=partial(_checked, one), **kind)(made)
        return click.command(cls=ConfiguredCommand)(made)

    return add


def _checked(one: Declared, context: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """Return the checked value of an option; missing options stay missing."""
    return given if given in (None, ()) else one.value(given, one.flag(), True)


def _settings(command: str, texts: Sequence[str]) -> dict[tuple[str, str], tuple[str, Any]]:
    """Return the values of --set in the form that `merge` takes."""
    known, found = offered(command), dict[str, Any]()
    for text in texts:
        place, equals, value = text.partition("=")
        table, _, key = place.partition(".")
        one = known.get(table, {}).get(key)
        if one is None:
            places = [f"{table}.{key}" for table, keys in known.items() for key in keys]
            near = did_you_mean(place, places)
            raise click.UsageError(f"--set must be TABLE.KEY=VALUE, as {places[0]}=..., got {short(text)}{near}")
        if not equals:
            raise click.UsageError(f"--set {place} must be {one.form.typed or one.form.must}: {one.help}")
        if place in found and not one.form.repeated:
            raise click.UsageError(f"--set {place} must be given once, got {short(text)}, too")
        found[place] = one, (*found[place][1], value) if place in found else (value,) if one.form.repeated else value
    return {
        (one.table, one.key): (f"--set {place}", one.value(given, f"--set {place}", True))
        for place, (one, given) in found.items()
    }
