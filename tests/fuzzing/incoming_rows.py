"""Decoders of the text files that `append` reads, and the valid texts with which their fuzzing begins."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pyarrow as pa

import tablefeed
from tablefeed.cli.incoming import TextOrBinary, opened_rows
from tablefeed.cli.rows import RowFormat, write_rows

_KINDS = pa.schema(
    {
        "id": pa.int64(),
        "small": pa.int8(),
        "f": pa.float32(),
        "price": pa.decimal128(10, 2),
        "b": pa.bool_(),
        "s": pa.string(),
        "raw": pa.binary(),
        "d": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "many": pa.list_(pa.float64()),
        "named": pa.map_(pa.int32(), pa.string()),
        "deep": pa.struct({"x": pa.int32(), "y": pa.struct({"z": pa.date32()})}),
    }
)


@cache
def _folder() -> Path:
    """A folder with an empty table of every kind of column."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tablefeed.append(f"{folder}/t", _KINDS.empty_table())
    return Path(folder)


def json_lines(data: bytes) -> None:
    """JSON lines for columns of the table and for new ones."""
    _kept(_read(data, TextOrBinary.JSONL), RowFormat.JSONL, TextOrBinary.JSONL)


def csv(data: bytes) -> None:
    """CSV for columns of the table and for new ones."""
    _kept(_read(data, TextOrBinary.CSV), RowFormat.CSV, TextOrBinary.CSV)


def _read(data: bytes, shape: TextOrBinary) -> pa.Table:
    file = _folder() / "rows"
    file.write_bytes(data)
    with opened_rows([str(file)], shape, str(_folder() / "t"), {}, lambda _count: None) as rows:
        found = rows.read_all()
    found.validate(full=True)
    return found


def _kept(found: pa.Table, written: RowFormat, shape: TextOrBinary) -> None:
    """Checks that `append` reads the same values again from what `cat` writes of the table's columns."""
    known = found.select([name for name in found.column_names if name.lower() in _KINDS.names])
    if known.column_names:
        text = _written(known, written)
        assert _written(_read(text, shape), written) == text


def _written(found: pa.Table, shape: RowFormat) -> bytes:
    file = _folder() / "written"
    write_rows(found.to_reader(), shape, output=file, limit=None)
    return file.read_bytes()


def json_lines_seeds() -> list[bytes]:
    texts = (
        '{"id":1,"small":-128,"f":"NaN","price":"1.50","b":true,"s":"é","raw":"AAE=","d":"2024-01-31"}\n'
        '{"id":2e1,"f":1.5,"price":2,"at":"2024-01-31 12:00:00Z","local":"2024-01-31 12:00:00.000001"}\n',
        '{"id":null,"d":"+12024-01-31","at":"-0001-01-31T12:00:00Z","many":[1,2.5,null,"-Infinity"]}\n',
        '{"named":{"1":"a","2":null},"deep":{"x":1,"y":{"z":"2024-01-31"}}}\n{"named":[[1,"a"]],"deep":{}}\n',
        '\ufeff{"new":1,"other":[{"a":1.5}]}\n\n{"new":2,"other":[]}',
    )
    return [text.encode() for text in texts]


def csv_seeds() -> list[bytes]:
    texts = (
        "id,small,f,price,b,s,raw\n1,-128,NaN,1.50,true,é,AAE=\n2,,1e30,2,false,,\n",
        "d,at,local\n2024-01-31,2024-01-31 12:00:00Z,2024-01-31 12:00:00.000001\n+12024-01-31,-0001-01-31T12:00:00Z,\n",
        'many,named,deep\n"[1,2.5]","{""1"":""a""}","{""x"":1,""y"":{""z"":""2024-01-31""}}"\n,,\n',
        "S\na\n\nNA\n",
        "\ufeffnew,other\r\n1e400,2024-01-31\r\n2,x\r\n",
    )
    return [text.encode() for text in texts]
