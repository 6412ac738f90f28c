"""Tables in the memory of a process, by their URL."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pyarrow as pa

import tablefeed


def test_a_table_in_memory_is_written_and_read_by_its_url() -> None:
    url = f"mem://{uuid.uuid4()}/orders"
    tablefeed.append(url, pa.table({"id": [1, 2]}))
    tablefeed.delete(url, "id = 1")

    assert tablefeed.open_table(f"{url}/").to_arrow().to_pylist() == [{"id": 2}]
    assert tablefeed.open_table(url).url == url


def test_a_process_of_spark_refuses_it_because_its_memory_is_another() -> None:
    program = (
        "import os, tablefeed\nos.environ['PYTHON_WORKER_FACTORY_SOCK_DIR'] = '/tmp'\n"
        "try:\n    tablefeed.append('mem://t', None)\nexcept tablefeed.TablefeedError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "in the memory of one process, and Spark has several" in done.stdout
