R"script(// The arena: each value a rectangle from its first event to its last, at the offset that the plan gave it.
function showArena(plan) {
  const box = byId("arena-box"), wide = widthOf(box), left = wide < 480 ? 58 : 74, right = wide - 8, top = 6, high = wide < 480 ? 210 : 260;
  const events = plan.events.length + 1, size = plan.memory.arena || 1;
  const x = (event) => left + event / events * (right - left), y = (n) => top + high - n / size * high;
  const svg = drawn("svg", {
    width: wide,
    role: "img",
    "aria-label": "The arena of " + bytes(plan.memory.arena) + ", with " + counted(plan.memory.allocations.length, "value")
  });
  for (const t of ticks(size, 4, true)) {
    svg.append(drawn("line", {class: "guide", x1: left, x2: right, y1: y(t), y2: y(t)}));
    svg.append(drawn("text", {class: "faint", x: left - 6, y: y(t) + 4, "text-anchor": "end"}, bytes(t)));
  }
  let chosen = null;
  for (const a of plan.memory.allocations) {
    const rect = drawn("rect", {
      class: "bar",
      x: x(a.first),
      y: y(a.offset + a.bytes),
      width: Math.max(1, x(a.last + 1) - x(a.first)),
      height: Math.max(0.7, y(a.offset) - y(a.offset + a.bytes)),
      fill: colour(a.use),
      "stroke-width": 0.6,
      stroke: "var(--card)"
    });
    const say = () => {
      if (chosen) chosen.classList.remove("chosen");
      chosen = rect;
      rect.classList.add("chosen");
      byId("arena-detail").textContent = bytes(a.bytes) + " at offset " + a.offset.toLocaleString("en") + " · " + a.use + " · events " + a.first +
        " to " + a.last + " · " + valueWords(plan, a);
    };
    rect.addEventListener("pointerover", say);
    rect.addEventListener("click", say);
    svg.append(rect);
  }
  svg.setAttribute("height", top + high + 8 + drawBands(plan, bandsOf(plan, equalSteps(plan)), x, svg, top + high + 6));
  byId("arena-detail").textContent = "Point at a rectangle, or tap it: which value it is and how long it lives.";
  box.replaceChildren(svg);
}
)script"
