"""What stands in a Delta log on local disk, as raw JSON: what both writers are compared by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Action = dict[str, Any]  # Any: JSON


def commit_actions(table: Path, version: int) -> list[tuple[str, Action]]:
    """The actions of one version in log order, each with its kind."""
    lines = (table / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
    return [(kind, action) for line in lines for kind, action in json.loads(line).items()]


def actions_of_kind(table: Path, kind: str) -> list[Action]:
    """All actions of one kind in the JSON commits, in log order."""
    commits = range(len(list((table / "_delta_log").glob("*.json"))))
    return [action for version in commits for found, action in commit_actions(table, version) if found == kind]
