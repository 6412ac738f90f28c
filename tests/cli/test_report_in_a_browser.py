"""The pages of report in a real browser, without a window. Screenshots are kept in build/pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tablefeed
from cli.tables import rows
from support.browser import Browser, chromium
from support.command_line import run

PICTURES = Path(__file__).parents[2] / "build" / "pages"
WIDER_THAN_ITS_BOX = """[...document.querySelectorAll('main *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth && !e.closest('.scroll, svg');
}).map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    for number in range(9):
        table = rows(*range(10 * number, 10 * number + number + 1))
        tablefeed.append(
            folder / "orders", table, partition_by=["day"], app_id="a-loader-with-a-long-name-" * 3, txn_version=number
        )
    tablefeed.delete(folder / "orders", "id = 20")
    assert run("report", folder / "orders", "-o", folder / "page.html").code == 0
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def test_a_page_asks_the_network_for_nothing_and_has_no_error(browser: Browser, page: Path) -> None:
    browser.open(page)

    requested = [e["params"]["request"]["url"] for e in browser.events if e["method"] == "Network.requestWillBeSent"]
    said = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
    assert requested == [page.as_uri()]
    assert [event for event in browser.events if event["method"] in said] == []


def test_light_dark_and_phone_differ_and_nothing_scrolls_sideways(browser: Browser, page: Path) -> None:
    pictures = set()
    for name, width, dark in [("light", 1100, False), ("dark", 1100, True), ("phone", 390, False)]:
        browser.open(page, width=width, dark=dark)
        browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
        pictures.add(browser.screenshot(PICTURES / f"report-{name}.png"))
        assert browser.value("document.documentElement.scrollWidth") == width, name
        assert browser.value(WIDER_THAN_ITS_BOX) == [], name

    assert len(pictures) == 3


def test_assistive_technology_meets_headings_plots_and_tables_by_their_names(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")

    headings, plots = browser.accessible("heading"), browser.accessible("image")
    assert headings[:3] == ["orders", "Health", "Commits over time"]
    assert plots[:3] == ["Commits over time", "Rows by operation", "Bytes by operation"]
    tables = browser.accessible("table")
    assert len(tables) == len(plots) + 1
    assert "" not in [*headings, *plots, *tables]


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_the_contrast_that_is_asked_for(dark: bool, browser: Browser, page: Path) -> None:  # noqa: FBT001
    browser.open(page, dark=dark)

    assert browser.value(CONTRASTS) > 4.5


CONTRASTS = """(() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(n => n / 255).map(
      c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (e) => {
    const own = getComputedStyle(e).backgroundColor;
    return own === 'rgba(0, 0, 0, 0)' && e.parentElement ? ground(e.parentElement) : own;
  };
  return Math.min(...[...document.querySelectorAll('p, dt, dd, small, h1, h2, span, summary, li, footer')]
    .filter(e => e.textContent.trim()).map(e => {
      const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
      return (a + .05) / (b + .05);
    }));
})()"""


def test_the_numbers_of_a_mark_are_shown_where_the_pointer_is(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.value("document.querySelector('svg').scrollIntoView()")
    x, y = browser.value(
        "(() => { const b = document.querySelector('svg .m').getBoundingClientRect(); return [b.x + 2, b.y + 20] })()"
    )

    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    assert " WRITE" in browser.value("document.querySelector('#tip').innerText")
