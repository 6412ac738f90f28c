"""Logs made up line by line: the valid ones are read right, and of the others nothing but our errors comes out."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hostile.judge import agrees, examples, is_answered
from hostile.junk import JUNK_LINES, JUNK_VALUES, spoilt
from hostile.logs import Folder
from hostile.strategies import Lines, endings, joined, logs
from hostile.ways_in import OTHER_WAYS, ask, ask_everything, other_ways

pytestmark = pytest.mark.timeout(900)  # for all examples of a law together, in `make fuzz`


@given(log=logs, ending=endings)
@examples(1_500)
def test_a_valid_log_is_read_as_a_plain_replay_reads_it(folder: Folder, log: list[Lines], ending: bytes) -> None:
    commits = joined(log, ending)

    answers = ask_everything(folder.log(commits))

    assert is_answered(answers)
    agrees(answers, commits)


@given(log=logs, data=st.data(), values=st.lists(JUNK_VALUES, min_size=1, max_size=2), other=other_ways)
@examples(4_500)
def test_whatever_the_fields_of_an_action_are_the_answer_is_right_or_ours(
    folder: Folder, log: list[Lines], data: st.DataObject, values: list[bytes], other: str
) -> None:
    for value in values:
        lines = data.draw(st.sampled_from(log))
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at] = data.draw(spoilt(lines[at], value))
    commits = joined(log, b"\n")

    agrees(ask_everything(folder.log(commits)), commits)
    ask(lambda: OTHER_WAYS[other](folder.path))


@given(log=logs, data=st.data(), junk=JUNK_LINES, ending=endings, other=other_ways)
@examples(3_000)
def test_whatever_the_lines_of_a_commit_are_the_answer_is_right_or_ours(
    folder: Folder, log: list[Lines], data: st.DataObject, junk: bytes, ending: bytes, other: str
) -> None:
    version = data.draw(st.integers(0, len(log) - 1))
    commits = joined(log, ending)
    whole = commits[version]
    place = data.draw(st.integers(0, len(whole)))
    removed = data.draw(st.sampled_from([0, 0, 1, 5, len(whole)]))
    commits[version] = whole[:place] + junk + whole[place + removed :]

    agrees(ask_everything(folder.log(commits)), commits)
    ask(lambda: OTHER_WAYS[other](folder.path))
