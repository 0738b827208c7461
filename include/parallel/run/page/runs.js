R"script(// All runs of the folder: which there are, which are shown, and when they are read again.
const runs = new Map(), charts = new Map();
let range = [0, 1];

const ago = (s) => s < 5400 ? counted(Math.max(1, Math.round(s / 60)), "minute") : s < 129600 ? counted(Math.round(s / 3600), "hour") : counted(Math.round(s / 86400), "day");
const there = () => [...runs.values()].filter((run) => run.there);

function showTable() {
  const all = there();
  const names = new Set(all.flatMap((run) => [...run.curves.keys()]));
  const columns = [...names].filter((name) => isLoss(name) || isRate(name) || name === "memory").sort((a, b) => chartOf(a).order - chartOf(b).order);
  const notes = [...new Set(all.flatMap((run) => Object.keys(run.head.notes)))];
  const rows = all.map((run) => {
    const id = "run-" + run.index, box = element("input", {type: "checkbox", id});
    box.checked = run.chosen;
    box.onchange = () => { run.chosen = box.checked, showCharts(); };
    const state = !run.last ? "begun" : run.goesOn() ? "running" : "heard " + ago(run.age()) + " ago";
    return element("tr", {}, element("th", {scope: "row"}, element("label", {for: id}, box, element("span", {class: "swatch", style: "margin:0;flex:none;background:" + inkOf(run)}), element("span", {title: run.name}, run.name))),
                   element("td", {}, state), cell(run.last ? run.last.step.toLocaleString("en") : ""),
                   ...columns.map((name) => cell(run.curves.has(name) ? chartOf(name).said(run.latest(name)) : "")), element("td", {}, run.head.mesh), ...notes.map((note) => element("td", {}, run.head.notes[note] ?? "")));
  });
  byId("runs-note").textContent = all.length > 0 ? "" : "No run is there yet: each that begins in this folder is shown.";
  const table = element("table", {}, columnHeads(["Run", "State", "Step", ...columns.map(capital), "Mesh", ...notes], [2, ...columns.map((c, i) => i + 3)]), element("tbody", {}, ...rows));
  if (table.textContent === byId("runs-table").textContent) return;
  const focused = document.activeElement?.id;
  byId("runs-table").replaceChildren(...table.children);
  if (focused) byId(focused)?.focus();
}

function showCharts() {
  const chosen = there().filter((run) => run.chosen);
  const last = chosen.reduce((end, run) => !run.last ? end : Math.max(end, shown.across === "steps" ? run.last.step : run.last.time - run.begin), 0) || 1;
  range = [last * shown.from, last];
  byId("from-said").value = shown.across === "steps" ? Math.ceil(range[0]).toLocaleString("en") : lasting(range[0]);
  byId("smoothing-said").value = shown.weight.toFixed(2);
  const wanted = new Map(chosen.flatMap((run) => [...run.curves.keys()].map((name) => [chartOf(name).key, chartOf(name)])));
  for (const [key, how] of wanted)
    if (!charts.has(key)) charts.set(key, new Chart(how));
  for (const key of charts.keys())
    if (!wanted.has(key)) charts.get(key).section.remove(), charts.delete(key);
  const ordered = [...charts.values()].sort((a, b) => a.order - b.order), box = byId("charts");
  if (ordered.some((chart, i) => box.children[i] !== chart.section)) box.replaceChildren(...ordered.map((chart) => chart.section));
  for (const chart of ordered) chart.show(chosen);
}

let turn = 0;
async function readAll() {
  for (const name of await load("runs.js") ?? [])
    if (!runs.has(name)) runs.set(name, new Run(name, runs.size));
  // of what has ended long ago something new is seldom heard
  const asked = [...runs.values()].filter((run) => !run.asked || turn % 15 === 0 || run.age() < 600 || !run.last && run.there);
  const changed = await Promise.all(asked.map((run) => run.read()));
  ++turn;
  showTable();
  if (changed.some((c) => c)) showCharts();
}
async function readOn() {
  if (byId("reads").checked && !document.hidden) await readAll();
  setTimeout(readOn, 2000);
}

const folder = decodeURIComponent(location.pathname).split("/").at(-2) || "this folder";
byId("name").textContent = folder, document.title = "Runs of " + folder;
byId("across").onchange = () => { shown.across = byId("across").value, shown.cursor = null, showCharts(); };
byId("from").oninput = () => { shown.from = byId("from").value / 100, shown.cursor = null, showCharts(); };
byId("smoothing").oninput = () => { shown.weight = byId("smoothing").value / 100, showCharts(); };
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (width === window.innerWidth) return;
  width = window.innerWidth;
  for (const chart of charts.values()) chart.draw();
});
readOn();
)script"
