"""What `_last_checkpoint` says is taken where it is whole, and is nothing where it is not; it is never an error."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.delta.checkpoint.last_checkpoint import Hint, checksum_text, parse_last_checkpoint
from tablefeed.model.actions import Version

# The sample of PROTOCOL.md, "JSON checksum".
SAMPLE = (
    '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", '
    '"k5": ["v5", "v6", "v7"]}]}}'
)
SAMPLE_CANONICAL = (
    '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",'
    '"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
)


def test_the_canonical_form_of_the_protocols_sample_is_the_protocols() -> None:
    assert checksum_text(json.loads(SAMPLE)) == SAMPLE_CANONICAL


def test_the_checksum_of_the_protocols_sample_is_the_protocols() -> None:
    assert hashlib.md5(SAMPLE_CANONICAL.encode(), usedforsecurity=False).hexdigest() == (
        "6a92d155a59bf2eecbd4b4ec7fd1f875"
    )


def test_a_hint_has_the_version_the_numbers_of_actions_and_parts_and_the_bytes_of_all_files() -> None:
    data = b'{"version":10,"size":24,"parts":3,"sizeInBytes":100,"tags":{"a":"b"}}'

    assert parse_last_checkpoint(data) == Hint(version=Version(10), action_count=24, part_count=3, size_bytes=100)


def test_a_size_that_was_not_counted_is_not_said() -> None:
    assert parse_last_checkpoint(b'{"version":10,"size":-1}') == Hint(version=Version(10))


def test_a_hint_that_fits_its_checksum_is_taken_and_any_other_is_not() -> None:
    text = '{"version":7,"size":2,"tags":{"a b":[1.50,true,null,"ü"]},"checksum":"%s"}'
    tags = '"tags"+"a%20b"+0=1.50,"tags"+"a%20b"+1=true,"tags"+"a%20b"+2=null,"tags"+"a%20b"+3="%C3%BC"'
    form = f'"size"=2,{tags},"version"=7'
    digest = hashlib.md5(form.encode(), usedforsecurity=False).hexdigest()

    assert parse_last_checkpoint((text % digest).encode()) == Hint(version=Version(7), action_count=2)
    assert parse_last_checkpoint((text % digest).replace(":7", ":8").encode()) is None
    assert parse_last_checkpoint((text % digest).replace(":2", ":3").encode()) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b"\xff\xfe{}",
        b'{"size":3}',
        b'{"version":null}',
        b'{"version":-1}',
        b'{"version":-2}',
        b'{"version":"7"}',
        b'{"version":7.5}',
        b'{"version":true}',
        b'{"version":9223372036854775808}',
        b'{"version":7,"size":"many"}',
        b'{"version":7,"parts":[]}',
        b'{"version":7,"version":7}',
        b'{"version":7,"tags":{"a":"b","a":"b"}}',
        b'{"version":7,"checksum":null}',
        b'{"version":7,"tags":"\\ud800"}',
        b"[" * 100_000,
    ],
)
def test_what_is_malformed_is_no_hint(data: bytes) -> None:
    assert parse_last_checkpoint(data) is None


@given(st.binary() | st.text().map(str.encode) | st.integers(-2, 2**70).map(lambda v: b'{"version":%d}' % v))
def test_no_bytes_are_an_error(data: bytes) -> None:
    hint = parse_last_checkpoint(data)

    assert hint is None or 0 <= hint.version < 2**63


def test_every_checksum_that_other_writers_wrote_is_understood(corpus: Path) -> None:
    files = sorted(corpus.glob("delta/**/_last_checkpoint"))
    summed = [file for file in files if b'"checksum"' in file.read_bytes()]

    assert len(summed) > 20
    assert [str(file) for file in files if parse_last_checkpoint(file.read_bytes()) is None] == []
