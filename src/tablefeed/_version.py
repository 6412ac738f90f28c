"""The version of tablefeed. The build reads it here, and so does a commit, also where no metadata is installed."""

from __future__ import annotations

__version__ = "0.1.0"
