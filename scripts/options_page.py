"""Generates the page on options from option_tables.py.

`PYTHONPATH=src python scripts/options_page.py > docs/reference/options.md`

All that the page says about a single option comes from those tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from tablefeed.feed.write.write_rules import TYPEMAP_PREFIX
from tablefeed.spark.option_tables import IGNORED, NOT_YET, SPECS, OptionSpec
from tablefeed.spark.options import PROPERTY_PREFIX, STORAGE_PREFIX

_TITLES = {
    "stream read": 'Reading a stream: `spark.readStream.format("tablefeed")`',
    "batch read": 'Reading a version: `spark.read.format("tablefeed")`',
    "read of changes": "Reading the changes of some versions: `spark.read` with `readChangeFeed`",
    "stream write": 'Writing a stream: `df.writeStream.format("tablefeed")`',
    "batch write": 'Writing once: `df.write.format("tablefeed")`',
    "stream write of changes": "Applying a stream of change events: `df.writeStream` with `keys`",
    "batch write of changes": "Applying change events once: `df.write` with `keys`",
}

_INTRODUCTION = f"""\
# Options

<!-- Made by `python scripts/options_page.py` from the tables that parse the options: change those, not this page. -->

Names and defaults are Delta-Spark's if it has the option. Names are matched in any case, and values are text. A name
that is not on this page is refused, and the error suggests the nearest one. `{STORAGE_PREFIX}<key>` goes to the store
as `<key>`. Hadoop's own `fs.*` names are refused.

On a write, batch or stream, `{PROPERTY_PREFIX}<name>` is a property of the table that the write creates, such as
`delta.enableChangeDataFeed=true` or `delta.feature.domainMetadata=supported`. The table gets the lowest protocol that
supports it. An existing table keeps its own properties, as with Delta-Spark's writer. An unknown property, and a value
that the property cannot have, are refused.

On a write, `{TYPEMAP_PREFIX}<column>` says how a string column is indexed in the IndexTables
table that the write creates, or in one that never had rows: `string`, as one term, which is the default, or `text`,
`json` or `ip`.

`{STORAGE_PREFIX}allow_absolute_paths` does not go to the store. It says which files outside the table's folder may be
opened. `true`: all that the log names. `false`: none. Unset: files with an absolute path of the table's own scheme, as
a shallow clone names the files of its source; if rows of a file that is named by `..` or by another scheme are read,
the read is refused. In Python: `storage_options={{"allow_absolute_paths": "false"}}`.
"""

_REFUSED = """\
## Refused by name

These options change which rows are read or what is written, and this version of tablefeed does not support them. Each
is refused with a remedy, unless it has the one value that asks for what happens anyway.
"""


def options_page() -> str:
    """Gives the whole page as Markdown."""
    blocks = [_INTRODUCTION]
    for direction, title in _TITLES.items():
        blocks += [f"## {title}\n", _table(_rows(SPECS[direction]), ("option", "value", "default", "what it does"))]
        names = ", ".join(f"`{name}`" for name in sorted(IGNORED[direction], key=str.lower))
        blocks.append(f"These are accepted and have no effect on rows; all but Spark's own give a warning: {names}.\n")
    refused = ((f"`{name}`", f"`{value}`" if value else "", remedy) for name, (value, remedy) in NOT_YET.items())
    blocks += [_REFUSED, _table(refused, ("option", "accepted value", "instead"))]
    return "\n".join(blocks)


def _rows(specs: Iterable[OptionSpec]) -> Iterator[tuple[str, ...]]:
    for spec in specs:
        kind = (spec.parse.__doc__ or "").partition("\n")[0].rstrip(".")
        yield f"`{spec.name}`", kind, _default(spec.default), spec.doc


def _default(value: object) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{value}`"


def _table(rows: Iterable[tuple[str, ...]], heading: tuple[str, ...]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(options_page())
