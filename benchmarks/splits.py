"""`python -m benchmarks.splits`: how fast the rows of an IndexTables split are read, Tantivy's own reader beside us.

Splits of 200,000 rows that Tantivy writes here: events of six plain columns, and the same with an array, a struct and
JSON. The two sides alternate, each in its own process. A side's clock starts when it has been imported and ends when it
has all rows: as Arrow on our side, as Python dicts on tantivy-py's, which has no other form. No Spark.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import environment
from benchmarks.turns import Sample, by_turns, facts, keep, today

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
ROWS = 200_000
SIDES = ("tablefeed", "tantivy")
PACKAGES = ("tablefeed", "pyarrow", "tantivy")
GOALS = {"plain": 300_000, "nested": 300_000}
"""The rows a second that our median should have at the least."""
DESCRIPTIONS = {
    "plain": f"plain: {ROWS:,} rows of a long, two strings, a double, a boolean and a timestamp",
    "nested": "nested: the same with an array of three strings, a struct of three members and a JSON column",
}


def main() -> None:
    """Makes the splits, measures both sides alternating and writes the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.splits", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument(
        "--scratch", type=Path, help="where the splits are made and removed: some 200 MB (the system's)"
    )
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "INDEX"), help="measure one side once and print it")
    given = parser.parse_args()
    if given.one:
        side, index = given.one
        print(json.dumps(_measured(side, Path(index))))
        return
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        indexes = {name: _index(Path(scratch) / name, name) for name in DESCRIPTIONS}
        sizes = {name: _split(index).stat().st_size for name, index in indexes.items()}
        samples = {name: _samples(str(index), given.rounds) for name, index in indexes.items()}
    _write(samples, sizes, given.results)


def _index(folder: Path, name: str) -> Path:
    """Writes an index into `folder`, and beside it the split that its files make."""
    import tantivy

    builder = tantivy.SchemaBuilder().add_integer_field("id", stored=True)
    for text in ("day", "name"):
        builder = builder.add_text_field(text, stored=True, tokenizer_name="raw")
    builder = builder.add_float_field("score", stored=True).add_boolean_field("flag", stored=True)
    builder = builder.add_date_field("at", stored=True)
    for nested in ("tags", "point", "details") if name == "nested" else ():
        builder = builder.add_json_field(nested, stored=True)
    folder.mkdir()
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(200_000_000, 1)
    for row in _rows(is_nested=name == "nested"):
        writer.add_document(tantivy.Document(**row))
    writer.commit()
    writer.wait_merging_threads()
    _split(folder).write_bytes(_bundle(folder))
    return folder


def _rows(*, is_nested: bool) -> Iterator[dict[str, Any]]:  # Any: whatever a document takes
    first = datetime(2024, 1, 1, tzinfo=UTC)
    for i in range(ROWS):
        at = first + timedelta(seconds=i)
        row: dict[str, Any] = {"id": i, "day": at.strftime("%Y-%m-%d"), "name": f"user_{i % 5000}"}
        row |= {"score": i * 1.5, "flag": i % 2 == 0, "at": at}
        if is_nested:
            row["tags"] = {"_values": [f"tag_{i % 7}", "common", f"tag_{i % 11}"]}
            row["point"] = {"x": i, "y": i / 2, "label": f"p{i % 100}"}
            row["details"] = {"kind": "click", "target": {"id": i, "path": ["a", "b"]}}
        yield row


def _split(index: Path) -> Path:
    return index.with_suffix(".split")


def _bundle(folder: Path) -> bytes:
    """The files of an index as one split, with nothing cached in its footer."""
    body, places = b"", {}
    for path in sorted(folder.iterdir()):
        if path.suffix != ".lock":
            content = path.read_bytes()
            places[path.name] = {"start": len(body), "end": len(body) + len(content)}
            body += content
    layout = struct.pack("<II", 403881646, 1) + json.dumps({"files": places}).encode()
    return body + layout + struct.pack("<II", len(layout), 0)


def _samples(index: str, rounds: int) -> dict[str, list[Sample]]:
    samples = by_turns("benchmarks.splits", SIDES, index, rounds)
    if {sample["rows"] for of_side in samples.values() for sample in of_side} != {ROWS}:
        raise SystemExit(f"a side does not see all rows: {samples}")
    return samples


def _measured(side: str, index: Path) -> Sample:
    read = _READERS[side]()
    begun, used = time.perf_counter(), time.process_time()
    rows = read(index)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": environment.peak_mb(), "rows": rows}


def _ours() -> Callable[[Path], int]:
    import pyarrow as pa

    from tablefeed.data.read import ReadPlan
    from tablefeed.data.splits import SplitFile, read_split_batches

    plain = {"id": pa.int64(), "day": pa.string(), "name": pa.string(), "score": pa.float64(), "flag": pa.bool_()}
    point = pa.struct([("x", pa.int64()), ("y", pa.float64()), ("label", pa.string())])
    nested = {"tags": pa.list_(pa.string()), "point": point, "details": pa.string()}
    schemas = {"plain": {**plain, "at": pa.timestamp("us", "UTC")}}
    schemas["nested"] = {**schemas["plain"], **nested}

    def read(index: Path) -> int:
        path = _split(index)
        plan = ReadPlan(schema=pa.schema(list(schemas[index.name].items())), batch_rows=10_000)
        file = SplitFile(path=path.name, size_bytes=path.stat().st_size, num_records=ROWS)
        with path.open("rb") as opened:

            def part(offset: int, length: int) -> bytes:
                opened.seek(offset)
                return opened.read(length)

            return sum(batch.num_rows for batch in read_split_batches(part, plan, file))

    return read


def _tantivy() -> Callable[[Path], int]:
    import tantivy

    def read(index: Path) -> int:
        searcher = tantivy.Index.open(str(index)).searcher()
        hits = searcher.search(tantivy.Query.all_query(), limit=searcher.num_docs).hits
        rows = 0
        for _, address in hits:
            rows += bool(searcher.doc(address).to_dict())
        return rows

    return read


_READERS: Mapping[str, Callable[[], Callable[[Path], int]]] = {"tablefeed": _ours, "tantivy": _tantivy}


def _write(samples: Mapping[str, Mapping[str, Sequence[Sample]]], sizes: Mapping[str, int], results: Path) -> None:
    rounds = len(next(iter(samples.values()))["tablefeed"])
    lines = [
        f"# Reading the rows of a split, {today()}",
        "",
        *(f"- {text}; {sizes[name] / 1e6:.0f} MB" for name, text in DESCRIPTIONS.items()),
        "",
        "| split | what | tablefeed | tantivy | ratio | goal | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(row for name, of_split in samples.items() for row in _lines(name, of_split)),
        "",
        f"Medians of {rounds} alternating runs. {facts(PACKAGES)}.",
        "",
    ]
    page = "\n".join(lines)
    keep("splits", page, results, PACKAGES, splits=DESCRIPTIONS, size_bytes=sizes, samples=samples)
    print(page)


def _lines(name: str, samples: Mapping[str, Sequence[Sample]]) -> Iterator[str]:
    medians = {
        key: [statistics.median(sample[key] for sample in samples[side]) for side in SIDES]
        for key in ("seconds", "cpu_seconds", "peak_mb")
    }
    rows_per_s, rows_per_cpu_s = ([ROWS / seconds for seconds in medians[key]] for key in ("seconds", "cpu_seconds"))
    peaks = medians["peak_mb"]
    goal = GOALS.get(name)
    verdict = "" if goal is None else "met" if rows_per_s[0] >= goal else "missed"
    bound = "" if goal is None else f">= {goal:,}"
    yield _line(name, "rows/s", [f"{n:,.0f}" for n in rows_per_s], rows_per_s[0] / rows_per_s[1], bound, verdict)
    told = [f"{n:,.0f}" for n in rows_per_cpu_s]
    yield _line(name, "rows/s of processor time", told, rows_per_cpu_s[0] / rows_per_cpu_s[1], "", "")
    yield _line(name, "peak_mb", [f"{n:.0f}" for n in peaks], peaks[0] / peaks[1], "", "")


def _line(name: str, what: str, sides: Sequence[str], ratio: float, goal: str, verdict: str) -> str:
    return f"| {' | '.join((name, what, *sides, f'{ratio:.2f}', goal, verdict))} |"


if __name__ == "__main__":
    main()
