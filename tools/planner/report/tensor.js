R"script(// How a tensor lies on the mesh: the blocks that split dimensions make, the ranks that hold each, copies as a pile, pending sums hatched.

const coordinates = (plan, rank) => {
  const result = {};
  for (const a of [...plan.mesh].reverse()) result[a.axis] = rank % a.ranks, rank = Math.floor(rank / a.ranks);
  return result;
};
const extentOf = (plan, axis) => (plan.mesh.find((a) => a.axis === axis) || {ranks: 1}).ranks;
const degreeOf = (plan, dim) => dim.axes.reduce((n, axis) => n * extentOf(plan, axis), 1);
const atCoordinates = (placement) => placement.startsWith("At<") ? placement.slice(3, -1).split(",").map(Number) : null;

/// Per rank the index of its slice in each dimension, or null where it holds nothing.
function slicesOf(plan, tensor) {
  return Array.from({length: plan.ranks}, (_, rank) => {
    const at = coordinates(plan, rank);
    if (tensor.placements.some((p) => atCoordinates(p.placement) && !atCoordinates(p.placement).includes(at[p.axis]))) return null;
    return tensor.shape.map((dim) => dim.axes.reduce((slice, axis) => slice * extentOf(plan, axis) + (at[axis] || 0), 0));
  });
}
const range = (plan, dim, slice) => {
  const n = dim.size / degreeOf(plan, dim);
  return slice * n + ":" + (slice + 1) * n;
};
const rangesOf = (plan, tensor, slices) => "[" + slices.map((s, d) => range(plan, tensor.shape[d], s)).join(", ") + "]";
const placedAs = (tensor, placement) => tensor.placements.some((p) => p.placement === placement);

/// The dimensions drawn as rows and columns: those that are split, else the last ones. A third split dimension makes panels.
function facing(plan, shape) {
  const split = shape.map((d, i) => i).filter((i) => degreeOf(plan, shape[i]) > 1), rank = shape.length;
  const taken = split.slice(-2);
  for (let i = rank - 1; i >= 0 && taken.length < Math.min(2, rank); --i)
    if (!taken.includes(i)) taken.push(i);
  taken.sort((a, b) => a - b);
  return {columns: taken.length > 0 ? taken.at(-1) : -1, rows: taken.length > 1 ? taken[0] : -1, panels: split.filter((i) => !taken.includes(i))};
}
/// At most a dozen slices, with a gap (null) before the last where there are more.
const shown = (n) => n <= 12 ? Array.from({length: n}, (_, i) => i) : [...Array.from({length: 10}, (_, i) => i), null, n - 1];
const rankWords = (ranks) =>
  (ranks.length === 1 ? "rank " : "ranks ") + (ranks.length <= 4 ? ranks.join(", ") : ranks.slice(0, 2).join(", ") + " … " + ranks.at(-1));

/// A block: as many sheets as ranks hold it, up to four.
function blockOf(x, y, size, ranks, slices, tensor) {
  const pending = placedAs(tensor, "Partial"), differently = placedAs(tensor, "Broadcast"), sheets = Math.min(4, ranks.length);
  const block = drawn("g", {class: "block"}, drawn("title", {}, rankWords(ranks) + ": " + slices));
  for (let k = sheets - 1; k >= 0; --k) {
    const at = {x: x + k * size.step, y: y + k * size.step, width: size.wide, height: size.high, rx: 5};
    block.append(drawn("rect", {...at, class: "sheet", fill: differently && k % 2 === 1 ? "var(--block-other)" : "var(--block)"}));
    if (pending) block.append(drawn("rect", {...at, fill: "url(#hatch)", class: "hatched"}));
  }
  if (pending) block.append(drawn("rect", {x: x + 8, y: y + size.high / 2 - 12, width: size.wide - 16, height: 24, rx: 4, fill: "var(--block)"}));
  block.append(words(x + size.wide / 2, y + size.high / 2 + 4, rankWords(ranks), {"text-anchor": "middle"}));
  return block;
}
function hatch() {
  const line = drawn("line", {x1: 0, y1: 0, x2: 0, y2: 7, stroke: "var(--edge)", "stroke-width": 1.6, opacity: 0.55});
  const tile = {id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"};
  return drawn("defs", {}, drawn("pattern", tile, line));
}

function tensorPicture(plan, tensor) {
  const {shape} = tensor, slices = slicesOf(plan, tensor), holders = new Map();
  for (const [rank, s] of slices.entries())
    if (s) holders.set(s.join(), [...(holders.get(s.join()) || []), rank]);
  const {columns, rows, panels} = facing(plan, shape);
  const shownOf = (d) => d < 0 ? [0] : shown(degreeOf(plan, shape[d]));
  const across = shownOf(columns), down = shownOf(rows);
  const copies = Math.min(4, Math.max(1, ...[...holders.values()].map((r) => r.length)));
  const size = {wide: 122, high: 62, step: 6}, gap = 12 + (copies - 1) * size.step;
  const left = rows < 0 ? 16 : 84, top = columns < 0 ? 8 : rows < 0 ? 44 : 62;
  const named = (d) => "dimension " + d + ", " + shape[d].size + shape[d].axes.map((a) => "/" + a).join("");
  const rangeOf = (d, slice) => slice === null ? "…" : range(plan, shape[d], slice);
  const svg = drawn("svg", {role: "img", "aria-label": tensor.text + " on " + plan.meshText()}, hatch());

  // a panel for each choice of slices in the dimensions that are neither down nor across
  let choices = [[]], height = 0;
  for (const d of panels) choices = choices.flatMap((c) => shownOf(d).filter((s) => s !== null).map((s) => [...c, s]));
  for (const choice of choices) {
    if (panels.length > 0) {
      svg.append(words(4, height + 14, panels.map((d, i) => "dimension " + d + ": " + rangeOf(d, choice[i])).join(", "), {"font-weight": 600}));
      height += 18;
    }
    if (rows >= 0) svg.append(words(4, height + 14, "↓ " + named(rows), {class: "faint"}));
    if (columns >= 0) {
      svg.append(words(4, height + (rows < 0 ? 14 : 31), "→ " + named(columns), {class: "faint"}));
      across.forEach((c, i) => {
        const x = left + i * (size.wide + gap) + size.wide / 2;
        svg.append(words(x, height + top - 8, rangeOf(columns, c), {"text-anchor": "middle", class: "code"}));
      });
    }
    down.forEach((r, j) => {
      const y = height + top + j * (size.high + gap);
      if (rows >= 0) svg.append(words(left - 8, y + size.high / 2 + 4, rangeOf(rows, r), {"text-anchor": "end", class: "code"}));
      across.forEach((c, i) => {
        if (r === null || c === null) return;
        const index = shape.map((_, d) => d === columns ? c : d === rows ? r : panels.includes(d) ? choice[panels.indexOf(d)] : 0);
        if (holders.has(index.join()))
          svg.append(blockOf(left + i * (size.wide + gap), y, size, holders.get(index.join()), rangesOf(plan, tensor, index), tensor));
      });
    });
    height += top + down.length * (size.high + gap) + 10;
  }
  const without = slices.flatMap((s, rank) => s ? [] : [rank]);
  if (without.length > 0) {
    svg.append(drawn("rect", {class: "nothing", x: left, y: height, width: size.wide, height: 34, rx: 5}));
    svg.append(words(left + size.wide + 10, height + 21, rankWords(without) + (without.length === 1 ? " holds nothing" : " hold nothing")));
    height += 44;
  }
  svg.setAttribute("width", Math.max(left + across.length * (size.wide + gap), 300)), svg.setAttribute("height", height);
  return svg;
}

function axisWords(tensor, axis) {
  const dim = tensor.shape.findIndex((d) => d.axes.includes(axis));
  if (dim >= 0) return "Split<" + dim + ">: each rank holds its slice of dimension " + dim;
  const placed = tensor.placements.find((p) => p.axis === axis);
  if (!placed) return "Invariant: every rank holds the whole and does the same with it";
  if (placed.placement === "Broadcast") return "Broadcast: every rank holds the whole and uses it differently, so its gradient is a pending sum";
  if (placed.placement === "Partial") return "Partial: each rank holds a term, the value is their sum; drawn hatched";
  return placed.placement + ": only these coordinates hold it";
}

function showTensor(plan, tensor) {
  byId("tensor-type")
    .replaceChildren(
      element("code", {}, tensor.text), " · ", element("span", {title: exact(tensor.bytes)}, bytes(tensor.bytes) + " on each rank that holds it"));
  byId("tensor-axes").replaceChildren(...plan.mesh.map((a) => element("li", {}, element("b", {}, a.axis), " · " + axisWords(tensor, a.axis))));
  byId("tensor-box").replaceChildren(tensorPicture(plan, tensor));
  const slices = slicesOf(plan, tensor), listed = slices.slice(0, 64);
  const head = element("tr", {}, ...["Rank", ...plan.mesh.map((a) => a.axis), "Holds", "Bytes"].map((h) => element("th", {scope: "col"}, h)));
  const term = placedAs(tensor, "Partial") ? "a term of " : "";
  const rows = listed.map((held, rank) => {
    const at = coordinates(plan, rank), cells = plan.mesh.map((a) => element("td", {}, String(at[a.axis])));
    cells.push(element("td", {class: "mono"}, held ? term + rangesOf(plan, tensor, held) : "nothing"));
    cells.push(element("td", {}, held ? sized(tensor.bytes) : "0 B"));
    return element("tr", {}, element("th", {scope: "row"}, String(rank)), ...cells);
  });
  if (slices.length > listed.length)
    rows.push(element("tr", {}, element("td", {colspan: plan.mesh.length + 3}, counted(slices.length - listed.length, "more rank"))));
  byId("tensor-table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

function showTensors(plan) {
  const list = byId("tensor"), tensors = [];
  list.replaceChildren();
  const group = (label, entries) => {
    if (entries.length === 0) return;
    const options = entries.map(([name, tensor]) => element("option", {value: tensors.push(tensor) - 1}, name + "  " + tensor.text));
    list.append(element("optgroup", {label}, ...options));
  };
  for (const [role, label] of [["parameter", "Parameters"], ["input", "Inputs"], ["state", "Optimizer state"]])
    group(label, plan.members.filter((m) => m.role === role).map((m) => [plan.member(m.path), m]));
  const made = plan.events.filter((e) => e.kind === "compute" || plan.collective(e)).map((e) => plan.node(e));
  for (const phase of phases)
    group("Made in " + phase, made.filter((n) => n.phase === phase).flatMap((n) => n.results.map((r) => [plan.called(n), plan.values[r]])));
  list.onchange = () => showTensor(plan, tensors[Number(list.value)]);
  if (tensors.length > 0) list.value = 0, list.onchange();
}
)script"
