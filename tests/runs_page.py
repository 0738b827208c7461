#!/usr/bin/env python3
"""Opens the page of runs in a headless Chromium, from disk, while a program logs, and holds what it shows against the lines of the logs.

    runs_page.py DIGITS DATA CHROMIUM [--screenshots FOLDER]

DIGITS is the program of examples/digits.cpp, DATA its folder of data. On a phone and on a desktop, in light and dark: no error, nothing fetched,
nothing wider than the page; what is logged meanwhile is shown; a long run is thinned before it is drawn.
"""
import argparse
import base64
import json
import math
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browser import NASTY, SIZES, Browser, check, faults_of, open_page

SHOWN = """(() => {
  const number = (selector) => document.querySelectorAll(selector).length, texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
  return {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    runs: texts("#runs-table tbody th"), steps: texts("#runs-table tbody td:nth-child(3)"), heads: texts("#runs-table thead th"),
    charts: [...document.querySelectorAll("#charts section")].map((s) => s.dataset.chart),
    curves: number("[data-chart=loss] .curve"), planned: number("[data-chart=memory] .planned"), no_numbers: number("[data-chart=loss] .none"), images: number("img"),
    details: Object.fromEntries([...document.querySelectorAll("#charts section")].map((s) => [s.dataset.chart, [...s.querySelectorAll(".detail li")].map((l) => l.textContent)])),
    cursors: document.querySelectorAll(".cursor[visibility=visible]").length,
  };
})()"""
# the contrast of colours with the card that they stand on (WCAG)
CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const light = (name) => {
    canvas.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(canvas.fillStyle.slice(i, i + 2), 16) / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const against = (name) => { const both = [light(name), light("--card")].sort(); return (both[1] + 0.05) / (both[0] + 0.05); };
  return {curves: Math.min(...[0, 1, 2, 3, 4, 5, 6, 7].map((i) => against("--run-" + i))), text: Math.min(against("--ink"), against("--soft"))};
})()"""
BASE = ["samples_per_second", "seconds", "gradient_norm", "memory"]


def rows_of(run):
    lines = [line for file in sorted(run.glob("rows-*.js")) for line in file.read_text().splitlines()]
    return [json.loads(line[4:-2]) for line in lines if line.startswith("row(")]


def write_run(runs, name, rows, started=1.0, **more):
    """A run as RunLog writes it."""
    run = runs / name
    run.mkdir(parents=True, exist_ok=True)
    head = {"started": started, "from": 0, "mesh": "data=2", "ranks": 2, "ranks_here": 2, "planned": 5 << 20, "unit": "samples", "per_step": 8, "notes": {}}
    for file in run.glob("rows-*.js"):
        file.unlink()
    for i in range(0, len(rows), 2000):
        text = "".join(f"row({json.dumps(row)});\n" for row in rows[i : i + 2000])
        (run / f"rows-{i // 2000:05}.js").write_text(text + ("more();\n" if i + 2000 < len(rows) else ""))
    (run / "head.js").write_text(f"head({json.dumps(head | more)});\n")
    with open(runs / "runs.js", "a") as list_of_runs:
        list_of_runs.write(f"run({json.dumps(name)});\n")


def row(step, loss, **more):
    return {"step": step, "time": time.time(), "memory": 9 << 20, "loss": loss, **more}


def wait(browser, what, seconds=30):
    """Until the page shows it. How long that took."""
    begun = time.monotonic()
    while not browser.ask(what):
        if time.monotonic() - begun > seconds:
            sys.exit(f"runs_page.py: the page does not come to {what}; it shows {browser.ask(SHOWN)}")
        time.sleep(0.05)
    return time.monotonic() - begun


def steps_are(*steps):
    return f"JSON.stringify({SHOWN}.steps) === {json.dumps(json.dumps([f'{s:,}' for s in steps]).replace(' ', ''))}"


def said(value):
    """As the page writes a loss: four digits that count."""
    return f"{value:.2e}".replace("e-0", "e-") if abs(value) < 1e-3 else f"{float(f'{value:.4g}'):g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("digits"), parser.add_argument("data"), parser.add_argument("chromium")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    faults = 0
    signal.alarm(170)  # a browser that does not answer
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        runs = folder / "runs of <b> & 100%25 #1"
        page = runs / "runs.html"

        def train(name, *more):
            return subprocess.Popen([arguments.digits, "--data", arguments.data, "--mesh", "data=1", "--log", runs / name, *more], stdout=subprocess.DEVNULL)

        if train("first", "--epochs", "1").wait():
            sys.exit("runs_page.py: the program failed")
        browser = Browser(arguments.chromium, folder / "profile")
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser(domain + ".enable")

        # A run that is watched, and one that begins meanwhile.
        open_page(browser, page, "desktop", "light")
        first = rows_of(runs / "first")
        wait(browser, steps_are(first[-1]["step"]))
        shown = browser.ask(SHOWN)
        faults += check("one run", shown, {"runs": ["first"], "overflow": 0, "charts": ["loss", *BASE], "curves": 1, "planned": 1, "no_numbers": 0, "cursors": 0})
        faults += check("one run", {"detail": shown["details"]["loss"][0]}, {"detail": f"first: {said(first[-1]['loss'])} at step {first[-1]['step']}"})
        program = train("second", "--epochs", "4")
        while not rows_of(runs / "second") and program.poll() is None:
            time.sleep(0.001)
        program.send_signal(signal.SIGSTOP)  # so that it is not over before the page looks
        wait(browser, f"{SHOWN}.runs.includes('second')")
        faults += check("while it runs", {"runs": program.poll() is None}, {"runs": True})
        program.send_signal(signal.SIGCONT)
        program.wait()
        second = rows_of(runs / "second")
        wait(browser, steps_are(first[-1]["step"], second[-1]["step"]))

        # At the cursor stand the values of all curves; the mouse and the keys lead it.
        box = browser.ask("(() => { const r = document.querySelector('[data-chart=loss] svg').getBoundingClientRect(); return [r.left, r.right, r.top]; })()")
        quarter = second[-1]["step"] / 4
        browser("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 62 + (box[1] - box[0] - 72) / 4, y=box[2] + 50)
        near = min(second, key=lambda r: abs(r["step"] - quarter))
        shown = browser.ask(SHOWN)
        faults += check("hovering", {"cursors": shown["cursors"], "said": shown["details"]["loss"][1]},
                        {"cursors": len(BASE) + 1, "said": f"second: {said(near['loss'])} at step {near['step']}"})
        browser("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        browser.ask("document.querySelector('[data-chart=loss] svg').focus()")
        for key, step in (("Home", 0), ("ArrowRight", 1), ("End", second[-1]["step"])):
            for kind in ("rawKeyDown", "keyUp"):
                browser("Input.dispatchKeyEvent", type=kind, key=key)
            wait(browser, f"{SHOWN}.details.loss[1] === 'second: {said(second[step]['loss'])} at step {step}'", 2)
        browser.ask("document.activeElement.blur()")

        # What is shown is chosen.
        browser.ask("document.getElementById('run-0').click()")
        faults += check("one chosen", browser.ask(SHOWN), {"curves": 1, "runs": ["first", "second"]})
        browser.ask("document.getElementById('run-0').click()")
        path = "document.querySelector('[data-chart=loss] .curve:not(.raw)').getAttribute('d')"
        paths = {browser.ask(path)}
        for change in ("byId('smoothing').value = 80; byId('smoothing').oninput()", "document.querySelector('[data-chart=loss] input').click()",
                       "byId('from').value = 20; byId('from').oninput()", "byId('across').value = 'times'; byId('across').onchange()"):
            browser.ask(change)
            paths.add(browser.ask(path))
        faults += check("changed", {"pictures": len(paths), "curves": browser.ask(SHOWN)["curves"]}, {"pictures": 5, "curves": 4})

        # Names that are strange, numbers that are none, numbers of one's own, losses beside; one that begins anew while it is looked at.
        own = [row(i, math.nan if i == 5 else 1 / (i + 1), **{NASTY: i}, **({"validation_loss": 0.5} if i % 4 == 0 else {})) for i in range(12)]
        strange = "a 'b' & <i>"
        write_run(runs, strange, own, notes={NASTY: NASTY})
        for size in SIZES:
            for scheme in ("light", "dark"):
                what = f"{size}, {scheme}"
                open_page(browser, page, size, scheme)
                wait(browser, steps_are(first[-1]["step"], second[-1]["step"], 11))
                shown = browser.ask(SHOWN)
                faults += check(what, shown, {"runs": ["first", "second", strange], "overflow": 0, "charts": ["loss", *BASE, NASTY], "curves": 4, "planned": 3, "no_numbers": 1, "images": 0})
                faults += check(what, {"note": shown["heads"][-1]}, {"note": NASTY})
                contrasts = browser.ask(CONTRASTS)
                faults += check(what, {k: v >= {"curves": 3, "text": 4.5}[k] for k, v in contrasts.items()}, {"curves": True, "text": True})
                for fault in faults_of(browser):
                    print(f"{what}: {fault}")
                    faults += 1
                if arguments.screenshots:
                    screenshot(browser, arguments.screenshots / f"runs-{size}-{scheme}.png", size)
        write_run(runs, strange, own[:4], started=2.0)
        wait(browser, steps_are(first[-1]["step"], second[-1]["step"], 3))
        with open(runs / strange / "rows-00000.js", "a") as rows:
            rows.write(f"row({json.dumps(row(4, 0.25))});\n" + 'row({"step":5,"ti')  # as a reader may find it
        time.sleep(2.5)
        with open(runs / strange / "rows-00000.js", "a") as rows:
            rows.write(f'me":1,"loss":0.125}});\n')
        wait(browser, steps_are(first[-1]["step"], second[-1]["step"], 5))

        # Long runs.
        chance = random.Random(1)
        for long in ("long", "longer"):
            write_run(runs, long, [row(i, 3 * math.exp(-i / 3e4) + chance.random(), seconds=0.01, gradient_norm=chance.random()) for i in range(100_000)])
        took = wait(browser, steps_are(first[-1]["step"], second[-1]["step"], 5, 99_999, 99_999), 60)
        drawn = browser.ask("(() => { const t = performance.now(); showCharts(); return performance.now() - t; })()")
        pointed = browser.ask("(() => { const t = performance.now(); for (let i = 0; i < 50; ++i) charts.get('loss').go(1000 * i); return (performance.now() - t) / 50; })()")
        points = browser.ask("Math.max(...[...document.querySelectorAll('.curve')].map((c) => c.getAttribute('d').split('L').length))")
        print(f"two runs of 100000 steps: read in {took:.1f} s, drawn in {drawn:.0f} ms, pointed at in {pointed:.1f} ms, {points} points at most")
        faults += check("long", {"points": points < 4 * SIZES["desktop"][0]}, {"points": True})
        if arguments.screenshots:
            screenshot(browser, arguments.screenshots / "runs-long.png", "desktop")
        browser.end()
    print(f"{faults} faults")
    return 1 if faults else 0


def screenshot(browser, file, size):
    file.parent.mkdir(parents=True, exist_ok=True)
    clip = {"x": 0, "y": 0, "width": SIZES[size][0], "height": browser.ask("document.documentElement.scrollHeight"), "scale": 1}
    file.write_bytes(base64.b64decode(browser("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]))


if __name__ == "__main__":
    sys.exit(main())
