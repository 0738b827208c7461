R"script(// The tree of the step: phases, what repeats, source lines, the operations as they were written, and what each of them computes and moves.

/// The events as a tree, in their order: what micro-batches repeat, in it phases, in them layers, in those runs of one source line.
function stepTree(plan) {
  const root = {kind: "root", children: []};
  const within = (part, key, made) => {
    let child = part.children.at(-1);
    if (!child || child.key !== key) part.children.push(child = {key, children: [], ...made});
    return child;
  };
  for (const [index, event] of plan.events.entries()) {
    const node = plan.node(event);
    if (event.kind !== "compute" && !plan.collective(event)) continue;
    const regions = plan.chain(node.region);
    const layers = regions.filter((r) => plan.regions[r].kind === "layers");
    let part = root;
    for (const r of regions)
      if (!layers.includes(r)) part = within(part, "region " + r, {kind: "region", region: plan.regions[r]});
    part = within(part, node.phase, {kind: "phase", phase: node.phase});
    for (const r of layers) part = within(part, "region " + r, {kind: "region", region: plan.regions[r]});
    const origin = plan.origin(node), where = plan.line(origin);
    let line = part.children.at(-1);
    if (!line || line.kind !== "line" || line.where !== where)
      part.children.push(line = {kind: "line", where, file: origin ? origin.file : "", operations: []});
    // What nobody wrote, as the optimizer, goes by the operations themselves.
    const written = where !== "" && origin !== null, last = line.operations.at(-1);
    const name = !written ? node.operation : origin.operation === "move" ? "to<…>" : origin.operation;
    if (last && last.name === name && last.origin === (written ? node.origin : null)) last.events.push(index);
    else line.operations.push({name, origin: written ? node.origin : null, events: [index]});
  }
  return root.children;
}

/// Calls and bytes sent in one step under a part of the tree.
function movedUnder(plan, part) {
  const moved = {calls: 0, sent: 0};
  const add = (index) => {
    const event = plan.events[index], node = plan.node(event);
    if (plan.collective(event)) moved.calls += node.times, moved.sent += node.times * node.transition.sent;
  };
  const visit = (p) => p.children ? p.children.forEach(visit) : p.operations.forEach((o) => o.events.forEach(add));
  visit(part);
  return moved;
}
function pill(moved) {
  if (moved.calls === 0) return null;
  const calls = counted(moved.calls, "call");
  return element("span", {class: "pill", title: exact(moved.sent) + " sent per rank in " + calls}, calls + " · " + bytes(moved.sent));
}

function showMove(plan, node) {
  const t = node.transition;
  const what = [
    element("b", {}, spoken(t.kind) + (t.maximum ? " (max)" : "")), element("span", {}, "on " + t.axes.join("+")),
    element("span", {}, t.from + " → " + t.to), element("span", {class: "soft", title: exact(t.message)}, "message " + bytes(t.message)),
    element("span", {class: "soft", title: exact(t.sent)}, "sent " + bytes(t.sent))
  ];
  if (t.logical > 1) what.push(element("span", {class: "soft"}, "for " + t.logical + " layers at once"));
  if (node.times > 1) what.push(element("span", {class: "soft"}, "× " + node.times));
  if (node.seconds) what.push(element("span", {class: "soft"}, seconds(node.seconds)));
  const which = [element("code", {}, plan.type(node.operands[0]) + " → " + plan.type(node.results[0]))];
  if (node.member) which.unshift(element("code", {class: "soft"}, plan.member(node.member)));
  return element("li", {class: "moves"}, element("div", {class: "node"}, ...what), element("div", {class: "node"}, ...which));
}
function showNode(plan, node, member) {
  const t = node.transition;
  const parts = [
    element("span", {}, t ? spoken(t.kind) + ": " + t.from + " → " + t.to + " on " + t.axes.join("+") : spoken(node.operation)),
    element("code", {class: "soft"}, node.results.length > 0 ? plan.type(node.results[0]) : "")
  ];
  if (node.member !== null && plan.member(node.member) !== member) parts.push(element("code", {class: "soft"}, plan.member(node.member)));
  if (node.flops > 0) parts.push(element("span", {class: "soft", title: exact(node.flops, "floating point operations")}, flops(node.flops)));
  if (node.seconds) parts.push(element("span", {class: "soft"}, seconds(node.seconds)));
  return element("li", {class: "node quiet"}, ...parts);
}

/// The moves that cost nothing, which an operation's operands made on their way into it: they are in no event.
function freeMoves(plan, operation) {
  const happens = new Set(plan.events.map((e) => e.node)), used = new Set(plan.nodes.flatMap((n) => n.operands));
  return plan.nodes
    .filter((n, i) => n.origin === operation.origin && n.phase === "forward" && n.transition && !happens.has(i) && used.has(n.results[0]))
    .map((n) => (plan.nameOf(n.operands[0]) + " " + n.transition.from + " → " + n.transition.to + " on " + n.transition.axes.join("+")).trim());
}

function showOperation(plan, operation, phase) {
  const origin = operation.origin === null ? null : plan.origins[operation.origin];
  const nodes = operation.events.map((i) => [plan.events[i], plan.nodes[plan.events[i].node]]);
  const parts = [element("b", {}, (phase === "backward" && origin ? "back through " : "") + spoken(operation.name))];
  const member = origin && origin.member ? plan.member(origin.member) : "";
  if (member !== "") parts.push(element("code", {}, member));
  if (origin && phase === "forward")
    for (const r of origin.rules) {
      const title = "The rule of derivation that decided on " + r.axis;
      parts.push(element("span", {class: "rule", title}, r.axis + ": rule " + r.rule + ", " + rules[r.rule]));
    }
  const rows = nodes.map(([event, node]) => plan.collective(event) ? showMove(plan, node) : showNode(plan, node, member));
  const [, only] = nodes[0];
  if (nodes.length === 1 && phase === "forward" && !only.transition && only.operation === operation.name)
    parts.push(...[...rows.pop().children].slice(1));  // an operation that is one computation is one row
  const free = origin && phase === "forward" ? freeMoves(plan, operation) : [];
  if (free.length > 0) rows.unshift(element("li", {class: "node quiet soft"}, element("span", {}, "free: " + free.join("; "))));
  const moves = nodes.some(([event]) => plan.collective(event));
  return element("li", {class: moves ? null : "quiet"}, element("div", {class: "written"}, ...parts), element("ul", {}, ...rows));
}

const regionName = (region) => spoken(region.kind) + (region.reversed ? ", last first" : "");

function showPart(plan, part, phase) {
  const moved = movedUnder(plan, part);
  const quiet = moved.calls === 0 ? " quiet" : "";
  if (part.kind === "line") {
    const names = [...new Set(part.operations.map((o) => spoken(o.name)))].join(", ");
    const line = element("span", {class: "line", title: part.file || null}, part.where || "no line");
    const rows = part.operations.map((o) => showOperation(plan, o, phase));
    return element("details", {class: "source" + quiet}, element("summary", {}, line, element("span", {class: "words"}, names), pill(moved)),
                   element("div", {class: "inner"}, element("ul", {}, ...rows)));
  }
  const title = part.kind === "phase" ? part.phase : regionName(part.region);
  const count = part.kind === "region" ? element("span", {class: "count"}, "× " + part.region.count) : null;
  return element(
    "details", {class: part.kind === "phase" ? "phase " + part.phase + quiet : "region" + quiet, open: ""},
    element("summary", {}, element("span", {}, title), count, pill(moved)),
    element("div", {class: "inner"}, ...part.children.map((c) => showPart(plan, c, phase || part.phase))));
}

function showTree(plan) {
  const tree = byId("tree");
  tree.replaceChildren(...stepTree(plan).map((phase) => showPart(plan, phase)));
  const all = (open) => tree.querySelectorAll("details").forEach((d) => { d.open = open; });
  byId("open-all").onclick = () => all(true);
  byId("close-all").onclick = () => all(false);
  byId("only-moves").onchange = () => {
    tree.classList.toggle("only-moves", byId("only-moves").checked);
    if (byId("only-moves").checked) all(true);
  };
  byId("only-moves").onchange();
}
)script"
