"""The list of commands and the help text made from it. Imports neither typer nor anything of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A command: the function or the group of commands `name` in `tablefeed.cli.<module>`, and what it does."""

    module: str
    name: str
    summary: str


COMMANDS: Mapping[str, Entry] = {
    "inspect": Entry(module="looking", name="inspect", summary="Show schema, features, size and writers of a table."),
    "log": Entry(module="looking", name="log", summary="Show the commits of a table, the newest first."),
    "cat": Entry(module="looking", name="cat", summary="Print the rows of a table."),
    "changes": Entry(module="looking", name="changes", summary="Print what commits did to the rows of a table."),
    "tail": Entry(module="watching", name="tail", summary="Print commits or changed rows as they land."),
    "lag": Entry(module="watching", name="lag", summary="Show how far a query is behind, from its checkpoint."),
    "offsets": Entry(module="watching", name="offsets", summary="Show, check, reset or convert a query's offsets."),
    "diff": Entry(module="comparing", name="diff", summary="Show what two versions of a table do not have in common."),
    "verify": Entry(module="comparing", name="verify", summary="Check that two tables are equal, and show where not."),
    "doctor": Entry(module="doctor", name="doctor", summary="Say what can be done with a table, and what is wrong."),
    "explain": Entry(module="explaining", name="explain", summary="Find what is wrong in the output of Spark."),
    "report": Entry(module="reporting", name="report", summary="Make a page of plots about a table or a query."),
    "append": Entry(module="writing", name="append", summary="Append the rows of files to a table, in one commit."),
    "delete": Entry(module="writing", name="delete", summary="Delete rows, in one commit."),
    "apply-changes": Entry(module="writing", name="apply_changes", summary="Apply change events, in one commit."),
    "replicate": Entry(module="writing", name="replicate", summary="Copy a table commit by commit, and keep it so."),
    "optimize": Entry(module="upkeep", name="optimize", summary="Merge small files into large ones."),
    "vacuum": Entry(module="upkeep", name="vacuum", summary="List or delete files that nobody needs any more."),
    "checkpoint": Entry(module="upkeep", name="checkpoint", summary="Write a checkpoint into the log of a table."),
    "consumers": Entry(module="upkeep", name="consumers", summary="Show or change the readers that cleanup waits for."),
}


def overview() -> str:
    """Gives the help text of the whole command line."""
    commands = "".join(f"  {name:<15}{entry.summary}\n" for name, entry in COMMANDS.items())
    return f"""Usage: tablefeed [OPTIONS] COMMAND [ARGS]...

  Read, follow and write Delta Lake and IndexTables tables, without Spark.

Commands:
{commands}
Options:
  --version             Show the version and exit.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell, to copy it.
  --help                Show this message and exit.

"tablefeed COMMAND --help" describes a command. Exit codes: 0 done; 1 differences or
problems found; 2 wrong usage; 3 an error; 130 interrupted.
"""
