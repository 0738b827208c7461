R"script(// Memory over the step, stacked by use: what is held all the time below, what lives for a part of the step above it.

/// For each event (and the end of the step) the bytes of each use, all together, and the gaps between them.
function levels(plan) {
  const over = plan.memory.over_time;
  return over.together.map((total, event) => ({...Object.fromEntries(uses.map((use) => [use, over[use][event]])), total, gaps: over.gaps[event]}));
}

function valueWords(plan, allocation) {
  if (allocation.value === null) return "a collective's buffer";
  const node = plan.nodes[plan.values[allocation.value].node];
  return plan.type(allocation.value) + " · " + plan.called(node);
}

function showMemory(plan) {
  const all = levels(plan), most = Math.max(plan.memory.peak, ...all.map((l) => l.total));
  const highest = all.reduce((best, l, i) => l.total > all[best].total ? i : best, 0);
  const box = byId("memory-box"), wide = widthOf(box), left = wide < 480 ? 58 : 74, right = wide - 8, high = wide < 480 ? 210 : 280, top = 24;
  const x = (event) => left + event / all.length * (right - left), y = (n) => top + high - n / most * high;
  const svg = drawn("svg", {width: wide, role: "img", "aria-label": "Memory over the step, at most " + bytes(plan.memory.peak)});
  for (const t of ticks(most, 5, true)) {
    svg.append(drawn("line", {class: "guide", x1: left, x2: right, y1: y(t), y2: y(t)}));
    svg.append(drawn("text", {class: "faint", x: left - 6, y: y(t) + 4, "text-anchor": "end"}, bytes(t)));
  }
  const below = all.map(() => 0);
  for (const use of uses) {
    if (!all.some((l) => l[use] > 0)) continue;
    let path = "M" + x(0) + " " + y(below[0]);
    all.forEach((l, i) => { path += "L" + x(i) + " " + y(below[i] + l[use]) + "H" + x(i + 1); });
    for (let i = all.length - 1; i >= 0; --i) path += "L" + x(i + 1) + " " + y(below[i]) + "H" + x(i);
    svg.append(drawn("path", {d: path + "Z", fill: colour(use), stroke: "var(--card)", "stroke-width": 0.4}));
    all.forEach((l, i) => { below[i] += l[use]; });
  }
  svg.append(drawn("line", {class: "peak", x1: left, x2: right, y1: y(plan.memory.peak), y2: y(plan.memory.peak)}));
  svg.append(drawn("circle", {cx: x(highest + 0.5), cy: y(all[highest].total), r: 4, fill: "var(--mark)"}));
  svg.append(drawn(
    "text", {class: "peak-text", x: Math.min(Math.max(x(highest + 0.5), left + 60), right - 60), y: top - 8, "text-anchor": "middle"},
    "peak " + bytes(plan.memory.peak)));
  const cursor = drawn("line", {class: "cursor", y1: top, y2: top + high, x1: 0, x2: 0});
  svg.append(cursor);
  const bandsHigh = drawBands(plan, bandsOf(plan, equalSteps(plan)), x, svg, top + high + 6);
  svg.setAttribute("height", top + high + 8 + bandsHigh);

  const slider = byId("memory-event");
  const say = (event) => {
    cursor.setAttribute("x1", x(event + 0.5)), cursor.setAttribute("x2", x(event + 0.5));
    slider.value = event;
    const l = all[event], e = plan.events[event];
    const alive = plan.memory.allocations.filter((a) => a.first <= event && event <= a.last).sort((a, b) => b.bytes - a.bytes);
    const rest = alive.slice(5);
    const rows = alive.slice(0, 5).map((a) =>
      element("li", {}, swatch(a.use), element("b", {title: exact(a.bytes)}, bytes(a.bytes)), " " + a.use + " · " + valueWords(plan, a) + (a.member ? " · charged to " + a.member : "")));
    if (rest.length > 0)
      rows.push(element("li", {class: "soft"}, counted(rest.length, "more value") + ", " + bytes(rest.reduce((n, a) => n + a.bytes, 0))));
    slider.setAttribute("aria-valuetext", "event " + event + ", " + bytes(l.total));
    byId("memory-detail")
      .replaceChildren(
        element("b", {title: exact(l.total)}, bytes(l.total)),
        (l.gaps > 0 ? ", with gaps between what lives " + bytes(l.total + l.gaps) + "," : "") + " at event " + event + (e ? ": " + (e.kind === "wait" ? "wait for " : "") + plan.called(plan.node(e)) : ": the end of the step"),
        element("ul", {}, ...rows));
  };
  const point = (event) => say(Math.max(0, Math.min(all.length - 1, Math.floor((event.offsetX - left) / (right - left) * all.length))));
  svg.addEventListener("pointermove", point);
  svg.addEventListener("click", point);
  slider.max = all.length - 1;
  slider.oninput = () => say(Number(slider.value));
  box.replaceChildren(svg);
  say(highest);

  byId("memory-note").textContent = "The largest sum of what lives at one time is " + bytes(all[highest].total) + ", at event " + highest +
    "; packed at fixed offsets it takes " + bytes(plan.memory.peak) + ". What a loop keeps for the backward pass counts for all of its iterations.";
  const rows = uses.filter((use) => all.some((l) => l[use] > 0)).map((use) => {
    const largest = all.reduce((n, l) => Math.max(n, l[use]), 0);
    const held = ["parameters", "optimizer state", "inputs", "scalars"].includes(use) ? "all the time" : "for a part of the step";
    const name = element("th", {scope: "row"}, swatch(use), use);
    return element("tr", {}, name, cell(sized(all[highest][use])), cell(sized(largest)), element("td", {}, held));
  });
  const sum = element("tr", {}, element("th", {scope: "row"}, "together"), cell(sized(all[highest].total)), element("td"), element("td"));
  byId("memory-table").replaceChildren(columnHeads(["Use", "At the peak", "At most", "Held"], [1, 2]), element("tbody", {}, ...rows),
                                       element("tbody", {class: "sum"}, sum));
}
)script"
