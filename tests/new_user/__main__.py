"""Writes the transcripts anew, or those that are named: `PYTHONPATH=src:tests python -m new_user [NAME...]`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from new_user.player import NewUser, build_wheel
from new_user.things import CHANGING, TRANSCRIPTS, give_things, script

with tempfile.TemporaryDirectory() as folder:
    wheel = build_wheel(Path(folder))
    for transcript in sorted(TRANSCRIPTS.glob("*.txt")):
        if sys.argv[1:] and transcript.stem not in sys.argv[1:]:
            continue
        home = Path(folder) / transcript.stem
        home.mkdir()
        user = NewUser(home, wheel)
        give_things(transcript.stem, user.here)
        transcript.write_text(user.play(script(transcript.stem), CHANGING.get(transcript.stem, ())), encoding="utf-8")
        sys.stdout.write(f"{transcript}\n")
