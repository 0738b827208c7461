R"script(// The timeline: a track for what is computed and one for each set of axes. Times are predicted where a machine was named;
// elsewhere each event takes one equal step.

/// [{event, node, iteration, track, begin, end}] by begin.
function timelineOf(plan) {
  if (plan.timeline && plan.timeline.length > 0) return [...plan.timeline].sort((a, b) => a.begin - b.begin);
  const result = equalSteps(plan).map((c) => ({...c, track: "compute"}));
  for (const [index, event] of plan.events.entries()) {
    if (!plan.collective(event)) continue;
    const region = plan.node(event).region;
    let end = plan.events.findIndex((e, i) => i > index && e.kind === "wait" && e.node === event.node);
    if (end < 0)
      end = plan.events.findIndex((e, i) => i > index && e.kind === "end" && plan.node(e).region === region);  // waited for in the next iteration
    result.push({
      event: index,
      node: event.node,
      track: plan.node(event).transition.axes.join("+"),
      begin: index,
      end: (end < 0 ? plan.events.length - 1 : end) + 1
    });
  }
  return result.sort((a, b) => a.begin - b.begin);
}

/// What overlaps on a track goes into rows below each other: entry -> row.
function rowsOf(entries) {
  const ends = [];
  return entries.map((e) => {
    let row = ends.findIndex((end) => end <= e.begin + 1e-12);
    if (row < 0) row = ends.length;
    ends[row] = e.end;
    return row;
  });
}

/// Bars narrower than a pixel become one with their neighbours, so that a step of any length can be drawn.
function bars(entries, x) {
  const result = [];
  for (const e of entries) {
    const left = x(e.begin), right = x(e.end), last = result.at(-1);
    const small = right - left < 1;
    if (small && last && last.small && left - last.right < 1 && right - last.left < 6 && e.phase === last.entries[0].phase)
      last.right = right, last.entries.push(e);
    else result.push({left, right, small, entries: [e]});
  }
  return result;
}

const timelineView = {zoom: 1};

function timelineDetail(plan, bar, timed) {
  const e = bar.entries[0], node = plan.nodes[e.node], t = node.transition;
  const when = (at) => timed ? seconds(at) : "event " + Math.round(at);
  if (bar.entries.length > 1)
    return counted(bar.entries.length, "event") + " between " + when(e.begin) + " and " + when(bar.entries.at(-1).end) +
      "; zoom in to tell them apart";
  const said = [plan.called(node), node.phase];
  if (timed && typeof e.iteration === "number" && node.times > 1) said.push("run " + (e.iteration + 1) + " of " + node.times);
  else if (node.times > 1) said.push(node.times + " times a step");
  said.push(timed ? seconds(e.end - e.begin) + ", from " + when(e.begin) : "event " + e.event + (e.end - e.begin > 1 ? " to " + (e.end - 1) : ""));
  if (e.track !== "compute" && t) said.push(t.from + " → " + t.to, "message " + bytes(t.message), "sent " + bytes(t.sent));
  else if (node.flops > 0) said.push(flops(plan.flopsOf(node)));
  if (node.results.length > 0) said.push(plan.type(node.results[0]));
  return said.join(" · ");
}

function showTimeline(plan) {
  const entries = timelineOf(plan).map((e) => ({...e, phase: plan.nodes[e.node].phase}));
  const timed = Boolean(plan.timeline && plan.timeline.length > 0);
  const most = entries.reduce((end, e) => Math.max(end, e.end), timed ? 0 : plan.events.length) || 1;
  byId("timeline-note").textContent = timed ?
    "Predicted" + (plan.machine ? " for " + plan.machine.name : "") + ": a step of " + seconds(stepSeconds(plan)) +
      ". A collective runs beside what is computed until its result is needed." :
    "In the plan's order, one equal step for each event, and what repeats drawn once: no machine was named, so nothing is said about time.";

  const tracks = ["compute", ...new Set(entries.map((e) => e.track).filter((t) => t !== "compute"))];
  const box = byId("timeline-box");
  const frame = element("div", {class: "scroll"});
  const marks = element("div", {"aria-hidden": "true", style: "position:absolute;inset:0;pointer-events:none"});
  const draw = () => {
    const wide = Math.floor(widthOf(box) * timelineView.zoom), x = (at) => 4 + at / most * (wide - 8);
    const svg = drawn("svg", {width: wide, tabindex: 0, role: "img", "aria-label": "Timeline of the step; the arrow keys go from event to event"});
    const bands = bandsOf(plan, entries.filter((e) => e.track === "compute"));
    let y = 4 + drawBands(plan, bands, x, svg, 4);
    const all = [];
    marks.replaceChildren();
    for (const track of tracks) {
      const own = entries.filter((e) => e.track === track), rows = rowsOf(own), count = rows.reduce((n, r) => Math.max(n, r + 1), 1);
      const high = track === "compute" ? 30 : count > 4 ? 12 : 18;
      marks.append(element("span", {class: "soft", style: "position:absolute;left:4px;top:" + (y + 2) + "px;font-size:12px"}, track));
      y += 22;
      for (let row = 0; row < count; ++row) {
        for (const bar of bars(own.filter((e, i) => rows[i] === row), x)) {
          const e = bar.entries[0], node = plan.nodes[e.node], broad = Math.max(0.8, bar.right - bar.left - (bar.right - bar.left > 3 ? 1 : 0));
          const rect = drawn("rect", {
            class: "bar",
            x: bar.left,
            y,
            width: broad,
            height: high,
            rx: Math.min(3, broad / 3),
            fill: colour(track === "compute" ? e.phase : "moves"),
            "data-bar": all.length
          });
          all.push({...bar, rect});
          svg.append(rect);
          const label = spoken(track === "compute" || !node.transition ? plan.operationsOf(node) : node.transition.kind);
          if (bar.entries.length === 1 && high > 12 && broad > 6.4 * label.length + 8)
            svg.append(words(bar.left + 5, y + high / 2 + 4, label, {class: "inside " + (track === "compute" ? e.phase : "moves")}));
        }
        y += high + 2;
      }
      y += 6;
      svg.append(drawn("line", {class: "guide", x1: 0, x2: wide, y1: y - 3, y2: y - 3}));
    }
    for (const t of ticks(most, Math.max(3, Math.floor(wide / 110)), false))
      svg.append(drawn("text", {class: "faint", x: Math.min(x(t), wide - 40), y: y + 12}, timed ? seconds(t) : String(t)));
    svg.setAttribute("height", y + 18);

    let chosen = -1;
    const choose = (index, follow) => {
      if (index < 0 || index >= all.length) return;
      if (chosen >= 0) all[chosen].rect.classList.remove("chosen");
      chosen = index;
      all[chosen].rect.classList.add("chosen");
      byId("timeline-detail").textContent = timelineDetail(plan, all[chosen], timed);
      if (follow) frame.scrollLeft = Math.max(0, all[chosen].left - frame.clientWidth / 2);
    };
    const inOrder = all.map((b, i) => i).sort((a, b) => all[a].left - all[b].left);
    const under = (event) => {
      if (event.target.dataset && event.target.dataset.bar) choose(Number(event.target.dataset.bar), false);
    };
    svg.addEventListener("pointerover", under);
    svg.addEventListener("click", under);
    svg.addEventListener("keydown", (event) => {
      const place = inOrder.indexOf(chosen),
            to = {ArrowRight: place + 1, ArrowLeft: Math.max(0, place - 1), Home: 0, End: inOrder.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(inOrder[Math.min(to, inOrder.length - 1)], true);
    });
    frame.replaceChildren(svg);
  };
  const zoom = (factor) => {
    const middle = (frame.scrollLeft + frame.clientWidth / 2) / (widthOf(box) * timelineView.zoom);
    timelineView.zoom = factor === 0 ? 1 : Math.min(64, Math.max(1, timelineView.zoom * factor));
    draw();
    frame.scrollLeft = middle * widthOf(box) * timelineView.zoom - frame.clientWidth / 2;
  };
  byId("zoom-in").onclick = () => zoom(2);
  byId("zoom-out").onclick = () => zoom(0.5);
  byId("zoom-all").onclick = () => zoom(0);
  byId("timeline-detail").textContent = "Point at a bar, or tap it: what it is, where it was written, what it moves.";
  const key = (name, meaning) => element("li", {}, swatch(name), meaning);
  byId("timeline-key")
    .replaceChildren(
      ...phases.map((p) => key(p, p + ", computed")),
      key("moves", timed ? "a collective" : "a collective, from its start to where it is waited for"));
  timelineView.zoom = 1;
  box.replaceChildren(frame, marks);
  draw();
}
)script"
