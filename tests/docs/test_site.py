"""The site of docs: it is built without a warning, has every public name and command, fits a phone, and finds words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import tablefeed
import tablefeed.spark
from support.browser import Browser, chromium
from support.pages import page
from tablefeed.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "pages"
LOOKED_AT = ("", "tutorial/first-pipeline/", "reference/options/", "reference/api/", "how-to/row-changes/")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a server of this machine shows the site: a browser refuses the search of a page that is a file."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.mark.parametrize(("name", "module"), [("api.md", tablefeed), ("api-spark.md", tablefeed.spark)])
def test_every_public_name_is_on_its_page(name: str, module: object) -> None:
    named = re.findall(r"^::: tablefeed(?:\.spark)?\.(\w+)$", page(name), re.MULTILINE)

    assert sorted(named) == sorted(set(vars(module)["__all__"]) - {"TablefeedError"})


def test_every_command_has_a_section_with_its_options(site: Path) -> None:
    made = "".join((site / "reference" / f"commands-{each}" / "index.html").read_text() for each in ("read", "write"))

    named = set(re.findall(r'<h2 id="[\w-]+">tablefeed ([\w-]+)', made))
    assert named == set(COMMANDS)
    assert "<code>--allow-short-retention</code>" in made


def test_the_search_finds_an_option_and_leads_to_its_page(browser: Browser, address: str) -> None:
    browser.open(address)
    browser.value("document.querySelector('label[for=__search]').click()")
    browser.value(
        "const box = document.querySelector('input.md-search__input'); box.focus(); box.value = 'maxFilesPerTrigger';"
        "box.dispatchEvent(new Event('input', {bubbles: true})); box.dispatchEvent(new KeyboardEvent('keyup'))"
    )
    found: list[str] = []
    while not found:  # the search runs in a worker; pytest's timeout ends a search that finds nothing
        found = browser.value("[...document.querySelectorAll('a.md-search-result__link')].map(each => each.href)")
    browser.screenshot(PICTURES / "site-search.png")

    assert found[0].startswith(address + "reference/options/")


def test_a_page_asks_no_other_server_for_anything(browser: Browser, address: str) -> None:
    browser.open(address + "reference/options/")

    requested = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
    assert len(requested) > 3
    assert [each for each in requested if not each.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_page_fits_a_desk_and_a_phone_in_light_and_dark(name: str, browser: Browser, address: str) -> None:
    for view, width, dark in [("light", 1280, False), ("dark", 1280, True), ("phone", 390, False)]:
        browser.open(address + name, width=width, dark=dark)
        browser.screenshot(PICTURES / f"site-{Path(name).name or 'home'}-{view}.png")

        assert browser.value("document.documentElement.scrollWidth") == width, view
        assert browser.value("document.body.dataset.mdColorScheme") == ("slate" if dark else "default")


def test_no_page_of_docs_is_longer_than_250_lines() -> None:
    pages = (ROOT / "docs").rglob("*.md")

    assert [path.name for path in pages if len(path.read_text(encoding="utf-8").splitlines()) > 250] == []
