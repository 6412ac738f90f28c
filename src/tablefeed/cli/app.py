"""The commands as one application, and what becomes of their errors: one line on stderr, and an exit code."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tablefeed.cli.commands import COMMANDS, overview
from tablefeed.cli.exits import ERROR, INTERRUPTED, output_failures, plain_text, warnings_shown
from tablefeed.errors import IllegalOptionError, TablefeedError

_TYPED = "tablefeed.typed"
"""In the context of a command: what is typed for each argument of its function."""
_ARGUMENTS = "tablefeed.arguments"
"""In the same context: all that is typed after `tablefeed`."""
_LEAF = "tablefeed.leaf"
"""In the same context: the command, and what is typed after its name."""


def _typed(parameter: Any) -> str:  # Any: typer's own copy of click
    return str(max(parameter.opts, key=len)) if parameter.param_type_name == "option" else str(parameter.metavar)


def _names_of(error: TablefeedError, ctx: Any) -> dict[str, str]:
    """What is typed for each argument of the command's function, and for the argument that `error` names.

    Where the function has no argument of that name, the value says which one it is: a command with two tables gives
    both to calls that have one name for them.
    """
    typed: dict[str, str] = ctx.meta.get(_TYPED, {})
    if not isinstance(error, IllegalOptionError) or error.option in typed or _LEAF not in ctx.meta:
        return typed
    leaf, rest = ctx.meta[_LEAF]
    given = leaf.make_context(leaf.name, rest, parent=ctx, resilient_parsing=True).params
    texts = (
        (name, each)
        for name, value in given.items()
        for each in (value if isinstance(value, list | tuple) else [value])
    )
    names = [name for name, each in texts if isinstance(each, str) and error.value in (each, _spelt(each))]
    return {**typed, error.option: typed[names[0]]} if len(names) == 1 else typed


def _spelt(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _safe(text: str, ctx: Any) -> str:
    from tablefeed.feed.api.opening import without_credentials

    typed = ctx.meta.get(_ARGUMENTS, ())
    return without_credentials(text, [*typed, *(each.partition("=")[2] for each in typed)])


class Commands(TyperGroup):
    """The commands of `COMMANDS`. Each is imported when its name is typed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # Any: typer's own copy of click
        """Gives the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Gives the command of that name, None where there is none."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        found = getattr(import_module(f"tablefeed.cli.{entry.module}"), entry.name)
        if not isinstance(found, typer.Typer):
            one = typer.Typer(add_completion=False, rich_markup_mode=None)
            one.command(cmd_name)(found)
            found = one
        return typer.main.get_command(found)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Gives the command that is typed. For an unknown one the error suggests the nearest name."""
        ctx.meta[_ARGUMENTS] = args
        self.commands = dict.fromkeys(COMMANDS, self)  # only the names are read
        try:
            name, command, rest = super().resolve_command(ctx, args)
        finally:
            self.commands = {}
        leaf = getattr(command, "commands", {}).get(rest[0] if rest else "", command)
        ctx.meta[_TYPED] = {each.name: _typed(each) for each in getattr(leaf, "params", ())}
        ctx.meta[_LEAF] = leaf, [*(rest if leaf is command else rest[1:])]
        return name, command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Writes the overview."""
        formatter.write(overview())

    def invoke(self, ctx: Any) -> Any:
        """Runs a command. Errors of tables, interrupts and closed pipes become exit codes.

        No error repeats the password in a URL that was typed.
        """
        try:
            with output_failures(), warnings_shown():
                result = super().invoke(ctx)
        except TablefeedError as error:
            typer.echo(f"Error: {_safe(plain_text(error, _names_of(error, ctx)), ctx)}", err=True)
            raise typer.Exit(ERROR) from error
        except typer.TyperException as error:  # wrong usage
            error.message = _safe(error.message.replace(_PYDANTICS, ""), ctx)
            raise
        except KeyboardInterrupt as error:
            raise typer.Exit(INTERRUPTED) from error
        return result


_PYDANTICS = "Value error, "
"""What pydantic, which reads values for typer, writes before a message of typer's."""

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # typer's callback
    if wanted:
        from tablefeed._version import __version__

        with output_failures():
            typer.echo(f"tablefeed {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[  # its callback acts
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read, follow and write Delta Lake and IndexTables tables, without Spark."""
