R"script(// Words for what a plan holds.
const flops = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"]);
const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);
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
