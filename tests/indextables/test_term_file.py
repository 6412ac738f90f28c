"""Term dictionaries in both forms, against those that IndexTables and Tantivy wrote."""

from __future__ import annotations

import contextlib
import json
import struct
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.split_bytes import marks
from support.split_indexes import decode_sstable, decode_terms, files_of
from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.fst import Term, TermInfo, decode_fst
from tablefeed.indextables.split.sstable import as_sstables, encode_sstable
from tablefeed.indextables.split.tantivy_file import Part, decode_marked, decode_parts, encode_parts

if TYPE_CHECKING:
    import tantivy
else:
    tantivy = pytest.importorskip("tantivy")


@pytest.fixture(scope="module")
def term_files(index_tables: Path) -> list[bytes]:
    """Each `.term` file of the corpus."""
    bundles = [files_of(path.read_bytes()) for path in sorted(index_tables.rglob("*.split"))]
    found = [data for files in bundles for name, data in files.items() if name.endswith(".term")]
    assert len(found) > 40
    return found


def test_every_dictionary_of_the_corpus_is_written_again_as_the_bytes_that_it_has(term_files: list[bytes]) -> None:
    for file in term_files:
        parts = decode_parts(decode_marked(file).body)
        assert [encode_sstable(decode_sstable(part.data[:-4])) for part in parts] == [part.data[:-4] for part in parts]
        assert as_sstables(file) == file


def test_the_terms_of_a_field_of_the_corpus_are_those_of_its_values(index_tables: Path) -> None:
    (split,) = (index_tables / "it053_types_row").glob("*.split")
    files = files_of(split.read_bytes())
    fields = [field["name"] for field in json.loads(files["meta.json"])["schema"]]

    terms = {
        (fields[field], term)
        for name, data in files.items()
        if name.endswith(".term")
        for field, found in decode_terms(data).items()
        for term, _ in found
    }

    assert {("txt", word) for word in (b"the", b"quick", b"brown", b"fox")} <= terms
    assert {("s", 'héllo "q"\n'.encode()), ("s", b""), ("b", b"\0" * 7 + b"\1"), ("b", b"\0" * 8)} <= terms
    assert ("i", struct.pack(">Q", (1 << 63) - 1)) in terms  # -1, in the order of unsigned numbers
    assert ("bin", b"\x00\x01\xff") in terms


# --- Tantivy's own form ----------------------------------------------------------------------------------------------


def by_tantivy(folder: Path, texts: list[str]) -> bytes:
    """The `.term` file of an index of these texts, each a term of its own, and of a field without terms."""
    fields = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="raw", index_option="basic")
    schema = fields.add_text_field("none").build()
    index = tantivy.Index(schema, path=str(folder))
    writer = index.writer(15_000_000, 1)
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    (file,) = folder.glob("*.term")
    return file.read_bytes()


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text("ab", max_size=8)


@settings(deadline=None, max_examples=40)
@given(texts=st.lists(WORDS, min_size=1, max_size=60))
def test_the_terms_that_are_decoded_are_those_that_tantivy_was_given(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = by_tantivy(tmp_path_factory.mktemp("index"), texts)

    (found,) = decode_terms(file).values()

    assert [term for term, _ in found] == sorted({text.encode() for text in texts})
    assert [info.doc_count for _, info in found] == [
        texts.count(term.decode()) for term in sorted({text.encode() for text in texts})
    ]
    assert decode_terms(as_sstables(file)) == {0: found}


def test_a_node_of_every_byte_and_many_blocks_of_infos_are_decoded(tmp_path: Path) -> None:
    texts = [chr(0x20 + i % 0x500) + chr(0x100 + i) + f"{i}" * (i % 9) for i in range(5_000)]
    file = by_tantivy(tmp_path, texts)

    (found,) = decode_terms(file).values()

    assert [term for term, _ in found] == sorted(text.encode() for text in texts)
    ends = [info.postings_start + info.postings_bytes for _, info in found]
    assert [info.postings_start for _, info in found] == [0, *ends[:-1]]
    assert decode_terms(as_sstables(file)) == {0: found}


def test_terms_are_converted_one_by_one_not_held_as_values_of_python(tmp_path: Path) -> None:
    file = by_tantivy(tmp_path, [f"{i:x}" for i in range(20_000)])

    tracemalloc.start()
    as_sstables(file)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 150 * 20_000


def a_transducer_of_two(*, second: int = 1, address: int = 0) -> bytes:
    """By hand: of the terms a, 0, and b, `second`; its one node ends at byte 23 and leads `address` bytes back."""
    root = bytes([second, 0, address, address]) + b"ba" + b"\x11\x02"
    transducer = struct.pack("<QQ", 2, 0) + root + struct.pack("<QQ", 2, 23)
    infos = struct.pack("<QQ", 39, 2) + struct.pack("<QIQIQIBBB", 0, 1, 0, 5, 0, 0, 0, 3, 0) + b"\x2d"
    return transducer + infos + struct.pack("<QI", len(infos), 1)


def test_the_bytes_of_a_transducer_are_these() -> None:
    # The second term's bytes are 5 to 5 of three bits each: what ends it follows what begins it.
    assert list(decode_fst(a_transducer_of_two())) == [(b"a", TermInfo(1, 0, 5, 0, 0)), (b"b", TermInfo(0, 5, 0, 0, 0))]


def test_a_transducer_that_numbers_its_terms_otherwise_is_damaged() -> None:
    with pytest.raises(DamagedSplitError, match="not numbered in order"):
        list(decode_fst(a_transducer_of_two(second=2)))


@pytest.mark.parametrize("address", [10, 200])
def test_a_transducer_that_leads_outside_of_itself_is_damaged(address: int) -> None:
    with pytest.raises(DamagedSplitError, match="outside of it"):
        list(decode_fst(a_transducer_of_two(address=address)))


# --- the table of strings --------------------------------------------------------------------------------------------

LENGTHS = st.integers(0, 1 << 20)


@st.composite
def dictionaries(draw: st.DrawFn) -> list[Term]:
    terms = sorted(draw(st.sets(st.binary(max_size=40) | st.binary(max_size=2), max_size=40)))
    postings, positions = draw(LENGTHS), draw(LENGTHS)
    found = []
    for term in terms:
        info = TermInfo(draw(LENGTHS), postings, draw(LENGTHS), positions, draw(LENGTHS))
        found.append((term, info))
        postings, positions = postings + info.postings_bytes, positions + info.positions_bytes
    return found


@given(terms=dictionaries())
def test_what_is_encoded_is_decoded(terms: list[Term]) -> None:
    assert decode_sstable(encode_sstable(terms)) == terms


def test_infos_that_do_not_follow_each_other_are_not_encoded() -> None:
    with pytest.raises(ValueError, match="do not begin where"):
        encode_sstable([(b"a", TermInfo(1, 0, 5, 0, 0)), (b"b", TermInfo(1, 4, 1, 0, 0))])


def test_a_step_of_sixteen_bytes_has_the_long_form() -> None:
    info = TermInfo(1, 0, 0, 0, 0)
    encoded = encode_sstable([(b"x" * 15, info), (b"x" * 16, info), (b"x" * 17, info)])

    assert b"\xf0" + b"x" * 15 + b"\x1fx" + b"\x01\x10\x01x" in encoded


# --- damage ----------------------------------------------------------------------------------------------------------


def test_a_dictionary_of_a_kind_or_version_that_is_not_known_is_refused_by_name() -> None:
    body = encode_parts([Part(field=0, index=0, data=encode_sstable([]) + struct.pack("<I", 3))])
    with pytest.raises(UnsupportedSplitError, match="kind 3"):
        as_sstables(body + marks(body))
    with pytest.raises(UnsupportedSplitError, match="version 9"):
        list(decode_fst(a_transducer_of_two()[:-4] + struct.pack("<I", 9)))


def test_a_file_that_does_not_have_its_checksum_is_damaged(term_files: list[bytes]) -> None:
    file = term_files[0]
    with pytest.raises(DamagedSplitError, match="checksum"):
        decode_marked(bytes([file[0] ^ 1]) + file[1:])


@pytest.fixture(scope="module")
def a_transducer(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    texts = [f"{chr(33 + i)}{i % 7}" for i in range(60)] + ["word", "words"]
    (part,) = decode_parts(decode_marked(by_tantivy(tmp_path_factory.mktemp("index"), texts)).body)
    return part.data[:-4]


@examples(2_000)
@given(data=st.data())
def test_a_damaged_transducer_is_refused_or_read_and_fails_with_nothing_else(
    a_transducer: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(a_transducer)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DamagedSplitError, UnsupportedSplitError):
        list(decode_fst(bytes(damaged[: len(damaged) - data.draw(st.integers(0, 3))])))
