"""Make the pictures of the documentation from real runs, light and dark: python tools/pictures.py [NAME …]

Charts and drawings are SVG, screenshots of the report and the audit PNG (they need Playwright and a Chromium: `make
pictures` sets both up). Everything goes into docs/pictures/, with pictures.json, which says of each how it was made.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chart_pictures
import example_rows
import layer_picture
import moments_picture

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
THEMES = ("light", "dark")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
LIMIT = 1_000_000  # bytes per file


def evenrank(*arguments: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "evenrank", *arguments], cwd=cwd, check=True, capture_output=True)


def report(folder: Path) -> Path:
    evenrank("demo", "-o", "report.html", cwd=folder)
    return folder / "report.html"


def audit(folder: Path) -> Path:
    example_rows.write(example_rows.log(), folder / "log.csv")
    evenrank("audit", "log.csv", "--group", "age", "--k", "1,3,5", "-o", "audit.html", cwd=folder)
    return folder / "audit.html"


DEMO, AUDIT = "evenrank demo", "evenrank audit log.csv --group age --k 1,3,5 -o audit.html"
# name → the page, the width and height that are kept, and the command that made it
PAGES: dict[str, tuple[Callable[[Path], Path], tuple[int, int], str]] = {
    "report": (report, (1200, 690), DEMO),
    "report-phone": (report, (390, 640), DEMO),
    "audit": (audit, (1200, 720), AUDIT),
    "audit-phone": (audit, (390, 640), AUDIT),
}


def screenshots(names: list[str], record: dict[str, Any]) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in names:
            make, (width, height), command = PAGES[name]
            path = make(Path(folder))
            for theme in THEMES:
                size = {"width": width, "height": height}
                context = browser.new_context(
                    viewport=size, color_scheme=theme, device_scale_factor=2 if width < 600 else 1
                )
                page = context.new_page()
                page.goto(path.as_uri())
                page.wait_for_timeout(3000)  # charts are drawn after the page is there
                page.screenshot(path=FOLDER / f"{name}-{theme}.png")
                context.close()
                record[f"{name}-{theme}.png"] = {"made by": command, "shown": f"the first screen, {width} pixels wide"}
        browser.close()


def charts(names: list[str], record: dict[str, Any]) -> None:
    for name in names:
        made, words = chart_pictures.CHARTS[name]()
        for theme in THEMES:
            (FOLDER / f"{name}-{theme}.svg").write_bytes(chart_pictures.drawn(made, theme))
            record[f"{name}-{theme}.svg"] = {"made by": f"python tools/pictures.py {name}", "shown": words}


def layers(record: dict[str, Any]) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for theme in THEMES:
        (FOLDER / f"architecture-{theme}.svg").write_text(layer_picture.drawn(text, theme), encoding="utf-8")
        record[f"architecture-{theme}.svg"] = {
            "made by": "python tools/pictures.py architecture",
            "shown": "the table of layers in ARCHITECTURE.md, which tests/test_layers.py holds to the imports",
        }


def moments(record: dict[str, Any]) -> None:
    for theme in THEMES:
        (FOLDER / f"moments-{theme}.svg").write_text(moments_picture.drawn(theme), encoding="utf-8")
        words = "er.Moments of German Credit in three parts, merged; the sizes are those of its arrays"
        record[f"moments-{theme}.svg"] = {"made by": "python tools/pictures.py moments", "shown": words}


def main(asked: list[str]) -> None:
    known = [*PAGES, *chart_pictures.CHARTS, "architecture", "moments"]
    unknown = sorted(set(asked) - set(known))
    if unknown:
        sys.exit(f"No picture is called {', '.join(unknown)}; there are {', '.join(known)}.")
    asked = asked or known
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "pictures.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    made: dict[str, Any] = {}
    charts([name for name in asked if name in chart_pictures.CHARTS], made)
    if "architecture" in asked:
        layers(made)
    if "moments" in asked:
        moments(made)
    if any(name in PAGES for name in asked):
        screenshots([name for name in asked if name in PAGES], made)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    for name, about in made.items():
        about |= {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": commit}
        if (FOLDER / name).stat().st_size > LIMIT:
            sys.exit(f"{name} is larger than {LIMIT:,} bytes.")
    path.write_text(json.dumps(dict(sorted((record | made).items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
