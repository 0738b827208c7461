R"script(// The tree of the step: phases, what repeats, source lines, the operations as they were written, and what each of them computes and moves.

/// What nobody wrote and nothing but a number is: the gradient's first 1, the zeros that sums begin with.
const isBeginning = (node) => node.operation === "constant" && node.origin === null;

/// A move as one would write it.
const moveWords = (t) => "to<" + t.axes.map((a) => "On<" + a + ", " + t.to + ">").join(", ") + ">";

/// What the operations of a line are called; what nobody wrote, with how many there are.
function namesOf(operations) {
  const counts = new Map();
  for (const o of operations) counts.set(o.name, (counts.get(o.name) || 0) + (o.origin === null ? o.events.length : 0));
  return [...counts].map(([name, n]) => spoken(name) + (n > 1 ? " × " + n : "")).join(", ");
}

/// Of a pipeline, a part of the work on a micro-batch: "forward of chunk b".
function segmentName(plan, segment) {
  const task = plan.pipeline.tasks.find((t) => t.segment === segment);
  return task.work + (plan.pipeline.chunks > 1 ? " of chunk " + String.fromCharCode(97 + task.chunk % 26) : "");
}

/// The events as a tree, in their order: phases, in them layers, in those runs of one source line. Where micro-batches are accumulated, the phases
/// stand in what is before their loop, in it, and behind it.
function stepTree(plan) {
  const root = {kind: "root", children: []}, loop = plan.regions.findIndex((r) => r.kind === "micro_batches");
  const count = loop < 0 ? 1 : plan.regions[loop].count;
  const around = {before: "before the " + count + " micro-batches", within: "micro-batches", after: "after the " + count + " micro-batches"};
  const said = {before: "once", within: "× " + count, after: "once: what they added up"};
  const within = (part, key, made) => {
    let child = part.children.at(-1);
    if (!child || child.key !== key) part.children.push(child = {key, children: [], ...made});
    return child;
  };
  const segments = plan.pipeline ? plan.pipeline.segments.slice(0, -1) : [];
  segments.forEach((begin, s) => { around["segment " + s] = segmentName(plan, s), said["segment " + s] = "× " + count; });
  let place = loop < 0 ? null : "before", segment = 0;
  for (const [index, event] of plan.events.entries()) {
    const node = plan.node(event);
    if (node.region === loop && event.kind === "begin") place = plan.pipeline ? "segment 0" : "within";
    if (node.region === loop && event.kind === "end") place = ++segment < segments.length ? "segment " + segment : "after";
    if (isBeginning(node) || (event.kind !== "compute" && !plan.collective(event))) continue;
    let part = root;
    if (place && (node.phase !== "optimizer" || place.startsWith("segment"))) part = within(part, place, {kind: "part", title: around[place], count: said[place]});
    part = within(part, node.phase, {kind: "phase", phase: node.phase});
    for (const r of plan.chain(node.region))
      if (r !== loop) part = within(part, "region " + r, {kind: "region", region: plan.regions[r]});
    const origin = plan.origin(node), where = plan.line(origin);
    let line = part.children.at(-1);
    if (!line || line.kind !== "line" || line.where !== where)
      part.children.push(line = {kind: "line", where, file: origin ? origin.file : "", operations: []});
    // What nobody wrote, as the optimizer, goes by the operations themselves.
    const written = node.phase !== "optimizer" && origin !== null, last = line.operations.at(-1);
    const name = written ? origin.spelled : node.transition ? moveWords(node.transition) : plan.operationsOf(node);
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
  if (node.in_last !== null) what.push(element("span", {class: "soft"}, "in the last micro-batch"));
  if (node.seconds) what.push(element("span", {class: "soft"}, seconds(node.seconds)));
  const which = [element("code", {}, plan.type(node.operands[0]) + " → " + plan.type(node.results[0]))];
  if (node.member) which.unshift(element("code", {class: "soft"}, plan.member(node.member)));
  const why = element("details", {class: "why"}, element("summary", {}, t.cause), ...t.why.map((sentences) => element("p", {}, sentences)));
  return element("li", {class: "moves"}, element("div", {class: "node"}, ...what), element("div", {class: "node"}, ...which), why);
}
function showNode(plan, node, member) {
  const t = node.transition;
  const parts = [
    element("span", {}, t ? spoken(t.kind) + ": " + t.from + " → " + t.to + " on " + t.axes.join("+") : spoken(plan.operationsOf(node))),
    element("code", {class: "soft"}, node.results.length > 0 ? plan.type(node.results[0]) : "")
  ];
  if (node.member !== null && plan.member(node.member) !== member) parts.push(element("code", {class: "soft"}, plan.member(node.member)));
  if (node.flops > 0) parts.push(element("span", {class: "soft", title: exact(plan.flopsOf(node), "floating point operations")}, flops(plan.flopsOf(node))));
  if (node.seconds) parts.push(element("span", {class: "soft"}, seconds(node.seconds)));
  return element("li", {class: "node quiet"}, ...parts);
}

/// The moves that cost nothing, which an operation's operands made on their way into it: they are in no event.
function freeMoves(plan, operation) {
  const happens = new Set(plan.events.map((e) => e.node)), used = new Set(plan.nodes.flatMap((n) => n.operands));
  return plan.nodes
    .filter((n, i) => n.origin === operation.origin && n.phase === "forward" && n.transition && n.transition.ranks > 1 && !happens.has(i) && used.has(n.results[0]))
    .map((n) => (plan.nameOf(n.operands[0]) + " " + n.transition.from + " → " + n.transition.to + " on " + n.transition.axes.join("+")).trim());
}

function showOperation(plan, operation, phase) {
  const origin = operation.origin === null ? null : plan.origins[operation.origin];
  const nodes = operation.events.map((i) => [plan.events[i], plan.nodes[plan.events[i].node]]);
  const parts = [element("b", {}, (phase === "backward" && origin ? "back through " : "") + spoken(operation.name))];
  const member = origin && origin.member ? plan.member(origin.member) : "";
  if (member !== "") parts.push(element("code", {}, member));
  if (origin && phase === "forward")
    for (const r of origin.rules.filter((r) => plan.ranksOn(r.axis) > 1)) {
      const title = "The rule of derivation that decided on " + r.axis;
      parts.push(element("span", {class: "rule", title}, r.axis + ": rule " + r.rule + ", " + rules[r.rule]));
    }
  const rows = nodes.map(([event, node]) => plan.collective(event) ? showMove(plan, node) : showNode(plan, node, member));
  const [, only] = nodes[0];
  if (nodes.length === 1 && phase === "forward" && !only.transition && (origin ? origin.operation : operation.name) === plan.operationsOf(only))
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
    const line = element("span", {class: "line", title: part.file || null}, part.where);
    const rows = part.operations.map((o) => showOperation(plan, o, phase));
    return element("details", {class: "source" + quiet}, element("summary", {}, line, element("span", {class: "words"}, namesOf(part.operations)), pill(moved)),
                   element("div", {class: "inner"}, element("ul", {}, ...rows)));
  }
  const title = part.kind === "phase" ? part.phase : part.kind === "part" ? part.title : regionName(part.region);
  const times = part.kind === "region" ? "× " + part.region.count : part.count;
  const count = times ? element("span", {class: "count"}, times) : null;
  return element(
    "details", {class: part.kind === "phase" ? "phase " + part.phase + quiet : "region" + quiet, open: ""},
    element("summary", {}, element("span", {}, title), count, pill(moved)),
    element("div", {class: "inner"}, ...part.children.map((c) => showPart(plan, c, phase || part.phase))));
}

function showTree(plan) {
  const tree = byId("tree");
  tree.replaceChildren(...stepTree(plan).map((phase) => showPart(plan, phase)));
  const all = (open) => tree.querySelectorAll("details:not(.why)").forEach((d) => { d.open = open; });
  byId("open-all").onclick = () => all(true);
  byId("close-all").onclick = () => all(false);
  byId("only-moves").onchange = () => {
    tree.classList.toggle("only-moves", byId("only-moves").checked);
    if (byId("only-moves").checked) all(true);
  };
  byId("only-moves").onchange();
}
)script"
