#!/usr/bin/env python3
"""Opens the report of a GPT in a headless Chromium, from disk, and holds what it shows against the JSON of the same plans.

    report.py PLANNER EXAMPLE CHROMIUM [--screenshots FOLDER]

PLANNER is the program of tools/plan, EXAMPLE examples/gpt.cpp. On a phone and on a desktop, in light and dark: no error, nothing fetched, nothing
wider than the page, every section there, and as many collectives in the tree as in the plan.
"""
import argparse
import base64
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import NASTY, SIZES, Browser, check, faults_of, open_page

# What the page shows of the plan that is chosen.
SHOWN = """(() => {
  const number = (selector) => document.querySelectorAll(selector).length;
  return {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    name: document.getElementById("name").title,
    rows: number("#totals-table tbody tr"), moves: number("#tree .moves"), whys: number("#tree .moves .why p:last-child"), lines: number("#tree .source"), regions: number("#tree .region"),
    phases: [...document.querySelectorAll("#tree .phase")].map((p) => p.classList[1]),
    bars: number("#timeline-box rect.bar"), stacked: number("#memory-box path"), peak: document.querySelector("#memory-box .peak-text").textContent,
    parts: [...document.querySelectorAll("#tree > details > summary")].map((s) => s.firstChild.textContent),
    stages: document.getElementById("stages").hidden ? 0 : number("#stages-box svg text.faint"),
    updates: [...document.querySelectorAll("#tree .optimizer .words")].map((w) => w.textContent).join(),
    links: document.getElementById("links").hidden ? 0 : number("#links-box rect.way"), busiest: [...document.querySelectorAll("#links-box .busiest")].map((e) => e.textContent),
    linked: getComputedStyle(document.getElementById("to-links")).display !== "none",
    placed: number("#arena-box rect.bar"), blocks: number("#tensor-box .block"), options: number("#tensor option"), images: number("img"),
    beside: document.getElementById("notes").textContent.includes("Beside the program all ranks compare"),
    inputs: document.getElementById("notes").textContent.includes(" of inputs before steps 1, 2, 4, 8 and so on"),
  };
})()"""

CHOOSE = """((text) => { const list = document.getElementById("tensor"), found = [...list.options].find((o) => o.textContent.endsWith("  " + text));
  list.value = found.value; list.onchange();
  return {blocks: document.querySelectorAll("#tensor-box .block").length, hatched: document.querySelectorAll("#tensor-box .hatched").length,
          rows: [...document.querySelectorAll("#tensor-table tbody tr")].map((r) => r.textContent)}; })"""


def expected(plan):
    starts = [e for e in plan["events"] if e["kind"] == "start"]
    segments = [f"{work} of chunk {chunk}" for chunk in "ab" for work in ("forward", "backward")]
    links = [(link["rank"], link["axis"], link["sent"], link["received"]) for link in plan["links"]]
    count = next((r["count"] for r in plan["regions"] if r["kind"] == "micro_batches"), 1)
    return {
        "name": plan["program"], "images": 0, "overflow": 0,
        "rows": sum(len(axes) for axes in plan["totals"].values()),
        "moves": len(starts), "whys": len(starts),
        "stages": plan["pipeline"]["stages"] if plan["pipeline"] else 0,
        "parts": [*segments, f"after the {count} micro-batches", "optimizer"] if plan["pipeline"] else [f"before the {count} micro-batches", "micro-batches", f"after the {count} micro-batches", "optimizer"] if count > 1 else
                 ["forward", "backward", "optimizer"],
        "bars": len(starts) + sum(e["kind"] == "compute" for e in plan["events"]),
        "links": 2 * sum(i == 0 or links[i - 1][1:] != link[1:] for i, link in enumerate(links)), "linked": bool(links),
        "busiest": ["rank 1"] if links else [],
        "placed": len(plan["memory"]["allocations"]),
        "beside": plan["agreement"]["counter"]["calls"] > 0, "inputs": plan["agreement"]["inputs"]["calls"] > 0,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("planner"), parser.add_argument("example"), parser.add_argument("chromium")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    faults = 0
    signal.alarm(150)  # a browser that does not answer
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        example = Path(arguments.example).read_text()
        model = example[example.index("using namespace parallel;"):example.index("struct Options")]
        source = folder / "gpt & <b>.cpp"  # the page shows the name of the file
        third = """struct Wide {
  Parameter<float, Shape<16, 16>> up;
  Parameter<float, Shape<16>> bias;
  constexpr auto operator()(Distributed auto x) const { return x + (relu(matmul(x, up)) + bias); }
};
struct Deep {
  Layers<8 / stage, Wide> blocks;
  Parameter<float, Shape<16>> gain;
  constexpr auto operator()(Distributed auto x) const { return mean(square(rms_norm(blocks(x), gain))); }
};
constexpr auto& third = plan<Pipelined<schedules::interleaved<2>, Accumulate<4, Training<Deep, AdamW, Tensor<float, Shape<8, 16>>>>>, Mesh{stage = 2}>;
"""
        served = """struct Shallow {
  Layers<3, Wide> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
constexpr auto& fourth = plan<AllStored<Training<Shallow, AdamW, Tensor<float, Shape<8 / data, 16>>>, Stored<data, At<1>>>, Mesh{data = 4}>;
"""
        second = "constexpr auto& second = plan<Accumulate<3, Step>, Mesh{data = 2, tensor = 4}>;\nauto use() { return second.calls(); }\n"
        source.write_text("#include <parallel/parallel.hpp>\n" + model + third + served + second)
        page = subprocess.run([arguments.planner, source, "--html", "--machine", "a100"], stdout=subprocess.PIPE, text=True, check=True).stdout
        report = folder / "report.html"
        report.write_text(page)
        begin = page.index(">", page.index('id="plans"')) + 1
        plans = json.loads(page[begin:page.index("</script>", begin)])
        if len(plans) != 4:
            sys.exit(f"report.py: {len(plans)} plans in the report, expected 4")

        browser = Browser(arguments.chromium, folder / "profile")
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser(domain + ".enable")
        for size in SIZES:
            for scheme in ("light", "dark"):
                open_page(browser, report, size, scheme)
                for index, plan in enumerate(plans):
                    what = f"{size}, {scheme}, plan {index}"
                    browser.ask(f"byId('plan').value = {index}; byId('plan').onchange()")
                    browser.ask("byId('open-all').click(); document.querySelectorAll('.why').forEach((d) => { d.open = true; })")
                    shown = browser.ask(SHOWN)
                    wanted = expected(plan)
                    del wanted["bars"]  # where room is scarce, small neighbours are one bar
                    predicted = browser.ask("byId('timeline-note').textContent")
                    faults += check(what, {"predicted": "Predicted for a100" in predicted}, {"predicted": True})
                    faults += check(what, shown, wanted)
                    parts = ("lines", "regions", "stacked", "blocks", "options", "bars")
                    faults += check(what, {k: bool(shown[k]) for k in parts}, {k: True for k in parts})
                    parameters = sum(plan["nodes"][e["node"]]["operation"] == "adamw" for e in plan["events"])  # of the stage
                    faults += check(what, {"updates": f"adamw × {parameters}" in shown["updates"]}, {"updates": True})
                    faults += check(what, {"phases": sorted(set(shown["phases"]))}, {"phases": ["backward", "forward", "optimizer"]})
                    if index == 0:
                        faults += check(what, browser.ask(CHOOSE + "('f32[4, 128, 512/tensor]')"), {"blocks": 2, "hatched": 0})
                        pending = browser.ask(CHOOSE + "('f32[12/data, 64, 128] +tensor')")
                        faults += check(what, pending, {"blocks": 2, "hatched": 4, "rows": [
                            f"{rank}{rank // 2}{rank % 2}a term of [{rank // 2 * 6}:{rank // 2 * 6 + 6}, 0:64, 0:128]192 KiB" for rank in range(4)]})
                    browser.ask("for (let i = 0; i < 4; ++i) byId('zoom-in').click()")
                    faults += check(what + ", zoomed", {"overflow": browser.ask(SHOWN)["overflow"]}, {"overflow": 0})
                    browser.ask("byId('zoom-all').click(); byId('close-all').click()")
                for fault in faults_of(browser):
                    print(f"{size}, {scheme}: {fault}")
                    faults += 1
                if arguments.screenshots:
                    screenshots(browser, arguments.screenshots, f"{size}-{scheme}", report, size, scheme)

        # What a plan calls things is text, whatever it is; and a report of one plan without a machine: every event one step.
        plan = dict(plans[0], program=NASTY)
        del plan["machine"], plan["seconds"], plan["timeline"]
        plan["members"] = [dict(m, path=NASTY) for m in plan["members"]]
        plan["origins"] = [dict(o, member=NASTY, file="/" + NASTY + "/" + NASTY) for o in plan["origins"]]
        report.write_text(page[:begin] + json.dumps([plan]).replace("<", "\\u003c") + page[page.index("</script>", begin):])
        for size in SIZES:
            open_page(browser, report, size, "light")
            shown = browser.ask(SHOWN)
            faults += check(f"{size}, strange names", shown, {"name": NASTY, "images": 0, "overflow": 0, "moves": expected(plan)["moves"]})
            if size == "desktop":
                faults += check(f"{size}, strange names", {"bars": shown["bars"]}, {"bars": expected(plan)["bars"]})
            for fault in faults_of(browser):
                print(f"{size}, strange names: {fault}")
                faults += 1
            if arguments.screenshots:
                screenshots(browser, arguments.screenshots, f"{size}-plain", report, size, "light")
        browser.end()
    print(f"{faults} faults")
    return 1 if faults else 0


def screenshots(browser, folder, name, report, size, scheme):
    """One picture of each part of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    open_page(browser, report, size, scheme)
    for part in ("header", "#totals", "#step", "#timeline", "#memory", "#tensors"):
        box = browser.ask(f"(() => {{ const r = document.querySelector('{part}').getBoundingClientRect(); return [r.top + scrollY, r.height]; }})()")
        clip = {"x": 0, "y": box[0], "width": SIZES[size][0], "height": box[1], "scale": 1}
        picture = browser("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        (folder / f"{name}-{part.strip('#')}.png").write_bytes(base64.b64decode(picture["data"]))


if __name__ == "__main__":
    sys.exit(main())
