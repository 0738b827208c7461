R"script(// The bands over a picture of the step: its phases, and what repeats. Without a machine every event of the plan is one equal step.

/// Neighbours with one key as one: [{key, begin, end}], of things with begin and end in the order of begin.
function runs(things, key) {
  const result = [];
  for (const t of things) {
    const k = key(t), last = result.at(-1);
    if (last && last.key === k) last.end = Math.max(last.end, t.end);
    else result.push({key: k, begin: t.begin, end: t.end});
  }
  return result.filter((r) => r.key !== null);
}

/// {phases, regions: one array per depth} of computations [{node, begin, end}].
function bandsOf(plan, computations) {
  const chains = computations.map((c) => plan.chain(plan.nodes[c.node].region));
  const chained = computations.map((c, i) => ({...c, chain: chains[i]}));
  const depth = chains.reduce((n, c) => Math.max(n, c.length), 0);
  const regions = [];
  // where the next iteration of the innermost loop begins, if the computations say which they belong to
  const turns = [];
  for (let i = 1; i < chained.length; ++i) {
    const [a, b] = [chained[i - 1], chained[i]];
    if (b.chain.length > 0 && a.chain.at(-1) === b.chain.at(-1) && a.iteration !== b.iteration) turns.push({depth: b.chain.length - 1, at: b.begin});
  }
  for (let d = 0; d < depth; ++d) regions.push(runs(chained, (c) => c.chain.length > d ? c.chain[d] : null));
  return {phases: runs(computations, (c) => plan.nodes[c.node].phase), regions, turns};
}
const equalSteps = (plan) => plan.events.flatMap((e, i) => e.kind === "compute" ? [{node: e.node, event: i, begin: i, end: i + 1}] : []);

/// Draws the bands; x: from a place in the step to pixels. Returns the height that they take.
function drawBands(plan, bands, x, svg, top) {
  let y = top;
  const box = (b, label, short, ink) => {
    const left = x(b.begin), wide = Math.max(1, x(b.end) - left - 1);
    const g = drawn(
      "g", {}, drawn("title", {}, label),
      drawn("rect", {x: left, y, width: wide, height: 16, rx: 3, fill: ink ? "var(--fill)" : colour(b.key), stroke: ink ? "var(--soft)" : "none"}));
    const fitting = [label, short].find((l) => l !== "" && wide > 6.6 * l.length + 6);
    if (fitting) g.append(words(left + 5, y + 12, fitting, {class: ink ? "faint" : "inside " + b.key}));
    svg.append(g);
  };
  for (const b of bands.phases) box(b, b.key, "", false);
  y += 19;
  bands.regions.forEach((row, depth) => {
    for (const b of row) box(b, spoken(plan.regions[b.key].kind) + " × " + plan.regions[b.key].count, "× " + plan.regions[b.key].count, true);
    const turns = bands.turns.filter((turn) => turn.depth === depth), room = row.reduce((n, b) => n + x(b.end) - x(b.begin), 0);
    if (room > 6 * turns.length)  // closer ones would only be grey
      for (const turn of turns) svg.append(drawn("line", {class: "turn", x1: x(turn.at), x2: x(turn.at), y1: y, y2: y + 5}));
    y += 19;
  });
  return y - top;
}
)script"
