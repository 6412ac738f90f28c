"""Chromium without a window, driven by its DevTools protocol over a pipe: what a page looks like and what it does.

Where no Chromium is installed, its tests are skipped; `make test-page` installs it.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SKIPPED_WITHOUT_CHROMIUM = "it needs Chromium, which is not installed: make test-page"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
"""A container has no sandbox to offer; the pages are ours."""

Answer = dict[str, Any]  # JSON


@dataclass(kw_only=True)
class Browser:
    """A running Chromium. `events` are those of the page that was opened last, in their order."""

    to: Any
    """Where commands are written, Any as `answers`: binary files."""
    answers: Any
    events: list[Answer] = field(default_factory=list)
    _session: str | None = None
    _last: int = 0

    def open(self, page: Path | str, *, width: int = 1100, dark: bool = False) -> None:
        """Opens the page of a file or an address, and returns when it is loaded."""
        self.events.clear()
        self._session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._read()

    def value(self, script: str) -> Any:  # Any: JSON
        """Gives the value of an expression in the page."""
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def screenshot(self, file: Path) -> bytes:
        """Writes a picture of the whole page to `file`."""
        picture = base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture)
        return picture

    def accessible(self, role: str) -> list[str]:
        """Gives the names of the nodes of a role that assistive technology sees."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        return [
            node.get("name", {}).get("value", "")
            for node in nodes
            if not node["ignored"] and node["role"]["value"] == role
        ]

    def close(self) -> None:
        """Lets Chromium end, which first ends its own processes."""
        self._session = None
        self.ask("Browser.close")

    def ask(self, method: str, **parameters: object) -> Answer:
        """Gives the answer to a command of the protocol."""
        self._last += 1
        session = {} if self._session is None else {"sessionId": self._session}
        command = {"id": self._last, "method": method, "params": parameters, **session}
        self.to.write(json.dumps(command).encode() + b"\0")
        self.to.flush()
        while (answer := self._read()).get("id") != self._last:
            pass
        assert "error" not in answer, (method, answer)
        return dict(answer["result"])

    def _read(self) -> Answer:
        text = bytearray()
        while (byte := self.answers.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            text += byte
        message: Answer = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Starts Chromium with a new profile. Skips the test where it is not installed."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip(SKIPPED_WITHOUT_CHROMIUM)
    (read, to), (answers, write) = os.pipe(), os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]
    # Chromium reads from 3 and writes to 4.
    command = ["bash", "-c", f'exec "$0" "$@" 3<&{high[0]} 4>&{high[1]}', program, *_FLAGS, "--remote-debugging-pipe"]
    process = subprocess.Popen([*command, f"--user-data-dir={profile}"], pass_fds=high, stderr=subprocess.DEVNULL)
    for end in (read, write, *high):
        os.close(end)
    try:
        with os.fdopen(to, "wb") as commands, os.fdopen(answers, "rb") as back:
            browser = Browser(to=commands, answers=back)
            yield browser
            browser.close()
            process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
