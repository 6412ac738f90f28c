from __future__ import annotations

from dataclasses import replace

import pytest

from support.index_log import METADATA, URL
from tablefeed.errors import UnsupportedFeatureError
from tablefeed.indextables.log.protocol import NEW_TABLE, refuse_companion, refuse_reading, refuse_writing
from tablefeed.model.actions import Protocol


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_protocols_up_to_4_are_taken(version: int) -> None:
    refuse_writing(Protocol(min_reader_version=version, min_writer_version=version), url=URL)
    refuse_writing(NEW_TABLE, url=URL)


@pytest.mark.parametrize("version", [0, 5, -1])
def test_another_protocol_is_refused_by_its_number(version: int) -> None:
    refused = rf"^\[INDEXTABLES_UNSUPPORTED_PROTOCOL\] {URL} cannot be read: it needs protocol version {version},"

    with pytest.raises(UnsupportedFeatureError, match=refused):
        refuse_reading(Protocol(min_reader_version=version, min_writer_version=4), url=URL)


def test_a_writer_of_another_protocol_is_refused_where_a_reader_is_not() -> None:
    protocol = Protocol(min_reader_version=4, min_writer_version=5)

    refuse_reading(protocol, url=URL)
    with pytest.raises(UnsupportedFeatureError, match="cannot be written: it needs protocol version 5"):
        refuse_writing(protocol, url=URL)


def test_known_features_are_taken_and_others_refused_by_name() -> None:
    known = frozenset({"avroState", "schemaDeduplication", "multiPartCheckpoint"})
    refuse_writing(replace(NEW_TABLE, reader_features=known, writer_features=known), url=URL)

    with pytest.raises(UnsupportedFeatureError) as refused:
        refuse_reading(replace(NEW_TABLE, reader_features=known | {"deletionVectors"}), url=URL)
    assert refused.value.features == ("deletionVectors",)


def test_a_companion_is_refused_and_its_source_named() -> None:
    configuration = {
        "indextables.companion.enabled": "true",
        "indextables.companion.sourceTablePath": "s3://lake/orders",
    }

    with pytest.raises(UnsupportedFeatureError, match=r"Read s3://lake/orders itself\.") as refused:
        refuse_companion(replace(METADATA, configuration=configuration), url=URL)
    assert refused.value.features == ("companion",)
    assert refused.value.error_class == "INDEXTABLES_COMPANION_TABLE"
    refuse_companion(replace(METADATA, configuration={"indextables.companion.enabled": "false"}), url=URL)
