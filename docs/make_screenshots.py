"""Makes the pictures of the web page, each in light and dark, from a workspace like one that is worked with.

python docs/make_screenshots.py [name ...]
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

import lakeward
from lakeward.errors import ExpectationFailed
from lakeward.server.app import create_app

PLACE = Path(__file__).parent / "screenshots"
MOST_BYTES = 120_000
DESK, PHONE = (1160, 620), (390, 720)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-lcd-text",
]
REVENUE = "/datasets/shop.analytics.revenue_daily"
PAGES = {
    "overview": ("/", DESK),
    "datasets": ("/datasets", DESK),
    "dataset": ("/datasets/shop.raw.orders", DESK),
    "time-travel": ("/datasets/shop.raw.orders?version=1", DESK),
    "versions": (f"{REVENUE}?tab=versions", DESK),
    "changes": ("/datasets/shop.reference.rates?tab=changes", DESK),
    "quality": (f"{REVENUE}?tab=quality", DESK),
    "lineage": (f"{REVENUE}?tab=lineage", DESK),
    "open-elsewhere": ("/datasets/shop.raw.orders?tab=open", DESK),
    "sql": ("/sql", DESK),
    "edit": ("/edit/shop.reference.rates", DESK),
    "pipelines": ("/pipelines", DESK),
    "pipeline": ("/pipelines/revenue_daily", DESK),
    "flips": ("/flips", DESK),
    "flip": ("/flips/shop.raw.customers", DESK),
    "ledger": ("/ledger", DESK),
    "jobs": ("/jobs", DESK),
    "login": ("/login", DESK),
    "phone": ("/", PHONE),
    "phone-dataset": (f"{REVENUE}?tab=quality", PHONE),
}
QUERY = """select country, count(*) as orders, sum(amount) as amount
from shop.raw.orders o
join shop.raw.customers c on c.customer_id = o.customer_id
group by country
order by amount desc"""
PIPELINES = {
    "revenue_daily": """pipeline: revenue_daily
nodes:
  orders: {source: shop.raw.orders}
  customers: {source: shop.raw.customers, window: full}
  rates: {source: shop.reference.rates, window: full}
  joined: {join: {left: orders, right: customers, on: [customer_id], how: left}}
  in_euro:
    transform: |
      select j.day, j.country, sum(j.amount * r.rate)::decimal(18, 2) as revenue, count(*) as orders
      from joined j join rates r on r.currency = j.currency
      group by j.day, j.country
outputs:
  - dataset: shop.analytics.revenue_daily
    from: in_euro
    strategy: mirror
    primary_key: [day, country]
    expectations:
      - primary_key
      - row_count: {min: 10}
      - value: {sql: "sum(revenue)", within_of_previous: 2}
      - row: {check: "revenue < 90000", on_fail: warn}
""",
    "top_customers": """pipeline: top_customers
nodes:
  orders: {source: shop.raw.orders}
  best:
    transform: |
      select customer_id, sum(amount) as amount from orders group by customer_id order by 2 desc limit 100
outputs:
  - {dataset: shop.analytics.top_customers, from: best, strategy: replace, primary_key: [customer_id]}
""",
}


def orders(first: int, days: int) -> Iterator[dict[str, object]]:
    """Yield orders of some days, the same ones each time."""
    for number in range(first, first + days * 90):
        day = date(2026, 9, 1) + timedelta(days=number // 90)
        yield {
            "order_id": number,
            "customer_id": number * 7919 % 400,
            "day": day,
            "currency": ("EUR", "USD", "GBP")[number % 3],
            "amount": Decimal(number * 104_729 % 90_000) / 100 + 5,
            "note": "gift" if number % 11 == 0 else None,
        }


def fill(workspace: lakeward.Workspace, project: Path) -> None:
    """Make datasets, pipelines and a history, with some trouble in it."""
    columns = {
        "order_id": "long",
        "customer_id": "long",
        "day": "date",
        "currency": "string",
        "amount": "decimal(10,2)",
        "note": "string",
    }
    raw = workspace.create_dataset("shop.raw.orders", columns, ["order_id"], arm="iceberg")
    people = workspace.create_dataset(
        "shop.raw.customers", {"customer_id": "long", "name": "string", "country": "string"}, ["customer_id"]
    )
    people.write(
        [
            {"customer_id": n, "name": f"Customer {n}", "country": ("FR", "DE", "US", "JP", "BR")[n % 5]}
            for n in range(400)
        ]
    )
    rates = workspace.create_dataset(
        "shop.reference.rates", {"currency": "string", "rate": "decimal(8,4)", "note": "string"}, ["currency"]
    )
    rates.write(
        [
            {"currency": "EUR", "rate": Decimal("1.0000"), "note": "by definition"},
            {"currency": "USD", "rate": Decimal("0.9200"), "note": None},
            {"currency": "GBP", "rate": Decimal("1.1700"), "note": "from the bank's fixing"},
            {"currency": "CHF", "rate": Decimal("1.0400"), "note": None},
        ]
    )
    raw.write(orders(0, 12))
    (project / "pipelines").mkdir(parents=True)
    (project / "lakeward.toml").write_text('[project]\nname = "shop"\n', encoding="utf-8")
    for name, text in PIPELINES.items():
        (project / "pipelines" / f"{name}.yml").write_text(text, encoding="utf-8")
    workspace.apply(project)
    workspace.build()
    for part in range(1, 5):
        raw.write(orders(part * 1080, 12), mode="upsert")
        workspace.build("revenue_daily")
    _edit(rates, "CHF", {"rate": Decimal("1.0600"), "note": "after the holidays"})
    workspace.build()
    workspace.flip("shop.raw.customers").run(to="iceberg", until="canary")
    _edit(rates, "USD", {"rate": Decimal("92.0000")})
    try:
        workspace.build("revenue_daily")
    except ExpectationFailed:
        pass  # The mistake in the rate is kept out, and shown as failing.
    workspace.create_dataset("shop.analytics.forecast", {"day": "date", "revenue": "double"}, ["day"], arm="iceberg")


def _edit(rates: lakeward.Dataset, currency: str, cells: dict[str, object]) -> None:
    sheet = rates.editor.open()
    rows = [{**row, **cells} if row["currency"] == currency else row for row in sheet.rows.table.to_pylist()]
    rates.editor.apply(sheet.edit(rows), author="anna")


@contextmanager
def served(workspace: lakeward.Workspace, scratch: Path) -> Iterator[str]:
    """Serve a workspace, and return where."""
    app = create_app(workspace, scratch, page_rows=1000, body_limit=1 << 20)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)


def picture(browser: Browser, url: str, name: str, scheme: str) -> None:
    """Make one picture."""
    path, (width, height) = PAGES[name]
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(path)
    if name == "sql":
        page.get_by_label("Query").fill(QUERY)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#result table")
    if name == "edit":
        page.get_by_label("rate of row 3", exact=True).fill("1.1850")
        page.get_by_label("currency of new row 1").fill("JPY")
        page.get_by_label("rate of new row 1").fill("0.0062")
    page.wait_for_load_state("networkidle")
    file = PLACE / f"{name}-{scheme}.png"
    page.screenshot(path=file)
    context.close()
    size = file.stat().st_size
    assert size <= MOST_BYTES, f"{file.name} has {size:,} bytes, more than {MOST_BYTES:,}"


def main() -> None:
    """Make those that are named, or all."""
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lw-") as place:
        home = Path(place) / "shop"
        with lakeward.open(home) as workspace:
            fill(workspace, Path(place) / "project")
            with served(workspace, Path(place)) as url, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
                for name in sys.argv[1:] or PAGES:
                    for scheme in ("light", "dark"):
                        picture(browser, url, name, scheme)
                browser.close()


if __name__ == "__main__":
    main()
