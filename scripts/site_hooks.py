"""Makes the pages of the site that nobody writes: the commands with their options, from the program itself.

mkdocs.yml names this file. The API pages are made by mkdocstrings from the docstrings of the public names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tablefeed.cli.app import app
from tablefeed.cli.commands import COMMANDS

_PAGES = {
    "commands-read.md": (
        "Commands that read",
        {"looking", "watching", "comparing", "doctor", "explaining", "reporting"},
    ),
    "commands-write.md": ("Commands that write", {"writing", "upkeep"}),
}
_INTRODUCTION = """
`tablefeed COMMAND --help` shows the same. [The command line](command-line.md) shows the commands at work. It also has
the exit codes, and the options `--json` and `--storage-option`, which all commands have.
"""
_OF_ALL = {"--json", "--storage-option", "--help"}
_TYPE = re.compile(r" <(?:str|list\[str\]|int range)>")
"""What the help says of an argument's type, where it says nothing to a user."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages to those of the folder docs."""
    for name, (title, modules) in _PAGES.items():
        files.append(File.generated(config, f"reference/{name}", content=commands_page(title, modules)))
    return files


def commands_page(title: str, modules: set[str]) -> str:
    """Gives the page of the commands that are in these modules, as Markdown."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="tablefeed")
    names = [name for name, entry in COMMANDS.items() if entry.module in modules]
    sections = [text for name in names for text in _sections(root.get_command(context, name), f"tablefeed {name}")]
    return "\n".join([f"# {title}", _INTRODUCTION, *sections])


def _sections(command: Any, name: str) -> Iterator[str]:  # Any: typer's own copy of click
    context = command.context_class(command, info_name=name)
    children = getattr(command, "commands", {})
    if children:
        for child, each in children.items():
            yield from _sections(each, f"{name} {child}")
        return
    about, _, example = (command.help or "").partition("Example: ")
    yield f"## {name}\n\n{about.strip()}\n"
    if example:
        yield f"```bash\n{' '.join(example.split())}\n```\n"
    yield "| argument or option | what it is |\n| --- | --- |"
    for parameter in command.get_params(context):
        if not _OF_ALL.intersection(parameter.opts) and (record := parameter.get_help_record(context)) is not None:
            written, about = (" ".join(cell.replace("|", "\\|").split()) for cell in record)
            yield f"| `{_TYPE.sub('', written)}` | {about} |"
    yield ""
