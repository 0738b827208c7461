R"script(// Elements, numbers in human units, and words for what a plan holds. All data enters the page as text, never as markup.
const byId = (id) => document.getElementById(id);

/// element("td", {class: "number", title: "5 B"}, "5 B"): children are elements or text.
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) e.setAttribute(key, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}
function drawn(name, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) e.setAttribute(key, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

const words = (x, y, text, attributes = {}) => drawn("text", {x, y, ...attributes}, text);

function scaled(n, step, units) {
  let unit = 0;
  while (Math.abs(n) >= step && unit < units.length - 1) n /= step, ++unit;
  const digits = Number.isInteger(n) || Math.abs(n) >= 100 ? 0 : 1;
  return n.toFixed(digits) + " " + units[unit];
}
const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const flops = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"]);
const exact = (n, unit = "bytes") => Math.round(n).toLocaleString("en") + " " + unit;
function seconds(s) {
  if (s === 0) return "0 s";
  const [factor, unit] = s >= 1 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : s >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return Number((s * factor).toPrecision(3)) + " " + unit;
}
const counted = (n, one, many = one + "s") => n.toLocaleString("en") + " " + (n === 1 ? one : many);

/// A cell of a table with a number in it.
const cell = (...children) => element("td", {class: "number"}, ...children);
const swatch = (name) => element("span", {class: "swatch", style: "background:" + colour(name)});
const columnHeads = (names, numbers) =>
  element("thead", {}, element("tr", {}, ...names.map((n, i) => element("th", {scope: "col", class: numbers.includes(i) ? "number" : null}, n))));

/// Bytes as text, the exact number as its title.
const sized = (n) => element("span", {title: exact(n)}, bytes(n));

const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);
const spoken = (word) => word.replaceAll("_", " ");
/// A name that is too long for a title, without what is in its inner brackets: Training<Gpt, Tensor<int, Shape<...>>> -> Training<Gpt, Tensor<…>>
function brief(name) {
  if (name.length <= 72) return name;
  let depth = 0, result = "";
  for (const c of name) {
    if ("<{([".includes(c) && ++depth === 2) result += c + "…";
    if (depth < 2 || (depth === 2 && ">})]".includes(c))) result += c;
    if (">})]".includes(c)) --depth;
  }
  return result.replace(/\s+>/g, ">");
}

const rules = ["", "all whole", "it fits", "free moves", "completion", "gathering", "refusal", "results", "once"];
const phases = ["forward", "backward", "optimizer"];
const uses = ["parameters", "optimizer state", "inputs", "scalars", "parameters in use", "gradients", "activations", "temporaries", "buffers"];
const colour = (name) => "var(--" + name.replaceAll(" ", "-") + ")";

/// What the pictures ask of a plan, found once.
class Plan {
  constructor(json) {
    Object.assign(this, json);
    const staged = (m) => this.pipeline && m.shape.length > 0 && m.shape[0].axes.includes(this.pipeline.axis);
    this.layersOf = new Map(this.members.map((m) => [m.path, staged(m) ? this.pipeline.layers : m.layers > 0 ? "0-" + (m.layers - 1) : ""]));
  }
  node(event) { return this.nodes[event.node]; }
  /// The nodes that an event computes, by its first; what they are together, and their work.
  together(node) { return node.fused ? node.fused.nodes.map((n) => this.nodes[n]) : [node]; }
  operationsOf(node) { return node.fused ? node.fused.operations : node.operation; }
  flopsOf(node) { return this.together(node).reduce((sum, n) => sum + n.flops, 0); }
  origin(node) { return node.origin === null ? null : this.origins[node.origin]; }
  collective(event) { return event.kind === "start"; }
  /// blocks.*.mlp.up of four layers -> blocks.0-3.mlp.up
  member(path) {
    if (path === null) return "";
    return path.replace("*", this.layersOf.get(path) || "*");
  }
  /// The regions that a region lies in, and itself, from the outermost on; the program is none of them.
  chain(region) { return region > 0 ? [...this.chain(this.regions[region].parent), region] : []; }
  line(origin) { return origin && origin.line > 0 ? fileName(origin.file) + ":" + origin.line : ""; }
  ranksOn(axis) { return (this.mesh.find((a) => a.axis === axis) || {ranks: 1}).ranks; }
  type(value) { return this.values[value].text; }
  /// What a node is called, and where it was written.
  called(node) {
    const t = node.transition, origin = this.origin(node);
    const name = t ? spoken(t.kind) + (t.maximum ? " (max)" : "") + " on " + t.axes.join("+") : spoken(this.operationsOf(node));
    return [name, this.member(node.member), this.line(origin)].filter((w) => w !== "").join(" · ");
  }
  /// The member that a value comes from, be it an input; "" for none.
  nameOf(value) {
    const member = this.members.find((m) => m.value === value);
    return this.member(member ? member.path : this.values[value].member);
  }
  /// Of which stage the plan is, behind `before`; nothing where there are none.
  stageText(before) { return this.pipeline ? before + this.pipeline.axis + " " + this.pipeline.stage + " of " + this.pipeline.stages + ", " + this.pipeline.schedule : ""; }
  meshText() { return this.mesh.map((a) => a.axis + "=" + a.ranks).join(", "); }
}
)script"
