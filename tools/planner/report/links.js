R"script(// What goes through the link of each rank of an axis, where collectives lead to one rank or away from one, so that links differ.

/// Neighbours whose links have the same as one: [{first, last, sent, received}].
function alikeLinks(links) {
  const result = [];
  for (const l of links) {
    const last = result.at(-1);
    if (last && last.sent === l.sent && last.received === l.received) last.last = l.rank;
    else result.push({first: l.rank, last: l.rank, sent: l.sent, received: l.received});
  }
  return result;
}
const ranksOf = (l) => l.first === l.last ? "rank " + l.first : "ranks " + l.first + "–" + l.last;
const through = (l) => l.sent + l.received;
/// Those that have most, of links that are not all alike.
function busiestOf(all) {
  const most = Math.max(...all.map(through)), busiest = all.filter((l) => through(l) === most);
  return busiest.length < all.length ? busiest : [];
}
/// As many as are drawn, those that have most, in their order.
const shownLinks = (all) => [...all].sort((a, b) => through(b) - through(a)).slice(0, 24).sort((a, b) => a.first - b.first);

/// The links of one axis below `top`. Returns the height that they take.
function drawLinks(axis, all, busiest, svg, wide, top) {
  const left = wide < 480 ? 78 : 96, right = wide - 74, most = Math.max(...all.map((l) => Math.max(l.sent, l.received))) || 1;
  const x = (n) => left + n / most * (right - left);
  let y = top;
  const bottom = y + 20 + 36 * all.length;
  svg.append(words(4, y + 12, axis, {}));
  for (const t of ticks(most, wide < 480 ? 2 : 4, true)) {
    svg.append(drawn("line", {class: "guide", x1: x(t), x2: x(t), y1: y + 18, y2: bottom - 6}));
    svg.append(drawn("text", {class: "faint", x: x(t), y: bottom + 6, "text-anchor": "middle"}, bytes(t)));
  }
  y += 20;
  for (const l of all) {
    svg.append(words(4, y + 17, ranksOf(l), {class: busiest.includes(l) ? "link busiest" : "link faint"}));
    for (const [i, way] of ["sent", "received"].entries()) {
      const at = y + 1 + 13 * i;
      const bar = drawn("rect", {class: "way", x: left, y: at, width: Math.max(1, x(l[way]) - left), height: 12, rx: 2, fill: colour(way)});
      bar.append(drawn("title", {}, axis + " " + ranksOf(l) + ": " + way + " " + exact(l[way])));
      svg.append(bar, words(x(l[way]) + 5, at + 10, bytes(l[way]), {class: "faint"}));
    }
    y += 36;
  }
  return bottom + 14 - top;
}

function linkWords(axis, all, busiest) {
  if (busiest.length === 0) return axis + ": through every link goes as much.";
  const rest = Math.max(...all.filter((l) => !busiest.includes(l)).map(through)), one = busiest.length === 1 && busiest[0].first === busiest[0].last;
  const others = all.length - shownLinks(all).length;
  return axis + ": through the " + (one ? "link" : "links") + " of " + busiest.map(ranksOf).join(", ") + " goes " + bytes(through(busiest[0])) + ", out and in together, " +
    (rest > 0 ? Number((through(busiest[0]) / rest).toPrecision(2)) + " times as much as through any other" : "all that there is") + ". The others wait behind " +
    (one ? "it." : "them.") + (others > 0 ? " Not drawn are " + counted(others, "rank") + " that have less." : "");
}

function showLinks(plan) {
  const none = plan.links.length === 0, box = byId("links-box");
  byId("links").hidden = byId("to-links").hidden = none;
  if (none) return box.replaceChildren(), byId("links-note").replaceChildren();
  const wide = widthOf(box), svg = drawn("svg", {width: wide, role: "img", "aria-label": "Bytes through the link of each rank"});
  let y = 0;
  const notes = [];
  for (const axis of new Set(plan.links.map((l) => l.axis))) {
    const all = alikeLinks(plan.links.filter((l) => l.axis === axis));
    const busiest = busiestOf(all);
    y += drawLinks(axis, shownLinks(all), busiest, svg, wide, y);
    notes.push(element("p", {}, linkWords(axis, all, busiest)));
  }
  svg.setAttribute("height", y);
  box.replaceChildren(svg);
  byId("links-note").replaceChildren(...notes);
  byId("links-key").replaceChildren(...["sent", "received"].map((way) => element("li", {}, swatch(way), way)));
}
)script"
