R"script(// A chart for each number that a run has, all across the same steps or the same time.

const plain = (n) => Number.isFinite(n) ? n !== 0 && (Math.abs(n) < 1e-3 || Math.abs(n) >= 1e6) ? n.toExponential(2).replace("e+", "e") : Number(n.toPrecision(4)).toString() : n > 0 ? "infinite" : n < 0 ? "−infinite" : "no number";
function perSecond(n) {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.abs(n) || 1) / 3)));
  return Number((n / 1000 ** power).toPrecision(4)) + ["", " k", " M", " G", " T"][power];
}
function lasting(s) {
  if (s < 60) return Math.round(s) + " s";
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return Math.floor(s / 3600) + ":" + two(s / 60 % 60) + ":" + two(s % 60);
}
const isLoss = (name) => name === "loss" || name.endsWith("_loss");
const isRate = (name) => name.endsWith("_per_second");
/// In which chart a number is drawn, in what order charts stand, and how their values are written.
function chartOf(name) {
  if (isLoss(name)) return {key: "loss", title: "Loss", order: 0, said: plain};
  if (isRate(name)) return {key: name, title: capital(name), order: 1, said: perSecond, zero: true, uneven: true};
  if (name === "seconds") return {key: name, title: "Time of a step", order: 2, said: seconds, zero: true, uneven: true};
  if (name === "memory") return {key: name, title: "Memory of the process", order: 5, said: bytes, zero: true, binary: true};
  return {key: name, title: capital(name), order: {learning_rate: 3, gradient_norm: 4}[name] ?? 6, said: plain};
}
const capital = (name) => spoken(name).replace(/^./, (c) => c.toUpperCase());
const inkOf = (run) => "var(--run-" + run.index % 8 + ")";

/// What all charts show.
const shown = {across: "steps", from: 0, weight: 0, cursor: null};

class Chart {
  static made = 0;
  constructor(how) {
    Object.assign(this, how, {logarithmic: false, curves: []});
    this.id = "chart-" + ++Chart.made;
    this.svg = drawn("svg", {tabindex: 0, role: "img", "aria-labelledby": this.id});
    this.picture = element("div", {class: "picture"}, this.svg);
    this.detail = element("p", {class: "detail"});
    const box = element("input", {type: "checkbox"});
    box.onchange = () => { this.logarithmic = box.checked, this.draw(); };
    this.section = element("section", {"aria-labelledby": this.id, "data-chart": this.key},
                           element("div", {class: "head"}, element("h2", {id: this.id}, this.title), element("label", {}, box, " logarithmic")), this.picture, this.detail);
    const point = (event) => this.go(this.place((event.clientX - this.svg.getBoundingClientRect().left)));
    this.svg.addEventListener("pointermove", point);
    this.svg.addEventListener("pointerdown", point);
    this.svg.addEventListener("pointerleave", () => this.go(null));
    this.svg.addEventListener("focus", () => this.detail.setAttribute("aria-live", "polite"));
    this.svg.addEventListener("blur", () => { this.detail.removeAttribute("aria-live"), this.go(null); });
    this.svg.addEventListener("keydown", (event) => {
      const [low, high] = range, by = (high - low) / (event.shiftKey ? 10 : 100), now = shown.cursor ?? high;
      const to = {ArrowRight: now + by, ArrowLeft: now - by, Home: low, End: high, Escape: null}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.go(to === null ? null : Math.min(high, Math.max(low, to)));
    });
  }
  go(place) { shown.cursor = place, charts.forEach((c) => c.point()); }

  /// `runs`: the chosen ones. What of them is drawn here.
  show(runs) {
    this.runs = runs;
    this.curves = runs.flatMap((run) => [...run.curves].filter(([name]) => chartOf(name).key === this.key).map(([name, curve]) => ({run, name, curve, at: curve[shown.across]})));
    this.draw();
  }
  draw() {
    const wide = widthOf(this.picture), high = wide < 480 ? 190 : this.order === 0 ? 300 : 220, left = 62, right = wide - 10, top = 8, foot = top + high;
    const [first, last] = range, columns = Math.max(1, Math.round(right - left));
    this.x = (at) => left + (at - first) / (last - first || 1) * (right - left);
    this.place = (x) => Math.min(last, Math.max(first, first + (x - left) / (right - left) * (last - first)));
    const lines = this.curves.flatMap((c) => {
      const points = thinned(c.at, c.curve.values, first, last, columns), pale = {...c, raw: true, points};
      if (shown.weight > 0) return [pale, {...c, points: thinned(c.at, smoothed(c.curve.values, shown.weight), first, last, columns)}];
      // what would only be a broad band is one behind its mean
      return points.length > 2 * columns ? [pale, {...c, points: averaged(c.at, c.curve.values, first, last, columns)}] : [{...c, points}];
    });
    const plans = this.key === "memory" ? this.runs.filter((run) => run.head.planned > 0) : [];
    const drawable = (v) => Number.isFinite(v) && (!this.logarithmic || v > 0);
    const values = lines.flatMap((l) => l.points.flatMap((p) => p && drawable(p[1]) ? [p[1]] : [])).concat(plans.map((run) => run.head.planned));
    let low = values.reduce((a, b) => Math.min(a, b), Infinity), most = values.reduce((a, b) => Math.max(a, b), -Infinity);
    if (values.length === 0) low = this.logarithmic ? 1 : 0, most = this.logarithmic ? 10 : 1;
    if (this.uneven && !this.logarithmic && values.length > 0)  // a step that waited leaves room for the others
      most = Math.min(most, 2 * [...values].sort((a, b) => a - b)[Math.floor(0.95 * (values.length - 1))]);
    if (this.logarithmic) low /= 1.1, most *= 1.1;
    else if (this.zero) low = 0, most = most * 1.05 || 1;
    else if (low === most) low -= Math.abs(low) / 10 || 1, most += Math.abs(most) / 10 || 1;
    else [low, most] = [low - (most - low) / 20, most + (most - low) / 20];
    const scale = this.logarithmic ? Math.log : (v) => v;
    this.y = (v) => foot - (scale(v) - scale(low)) / (scale(most) - scale(low)) * high;

    const marks = [], within = "url(#" + this.id + "-within)";
    marks.push(drawn("clipPath", {id: this.id + "-within"}, drawn("rect", {x: left - 2, y: top - 2, width: right - left + 4, height: high + 4})));
    const upward = this.binary && !this.logarithmic ? ticks(most, 5, true).filter((t) => t <= most) : ticksBetween(low, most, 5, this.logarithmic);
    for (const t of upward)
      marks.push(drawn("line", {class: "guide", x1: left, x2: right, y1: this.y(t), y2: this.y(t)}), words(left - 6, this.y(t) + 4, this.said(t), {class: "faint end"}));
    const said = shown.across === "steps" ? (t) => t.toLocaleString("en") : lasting;
    for (const t of ticksBetween(first, last, Math.max(2, Math.floor(wide / 120)), false))
      if (shown.across === "times" || Number.isInteger(t)) marks.push(words(Math.min(this.x(t), right - 12), foot + 16, said(t), {class: "faint middle"}));
    for (const run of plans)
      marks.push(drawn("line", {class: "planned", stroke: inkOf(run), x1: left, x2: right, y1: this.y(run.head.planned), y2: this.y(run.head.planned)},
                       drawn("title", {}, run.name + " by its plan: " + bytes(run.head.planned))));
    for (const line of [...lines.filter((l) => l.raw), ...lines.filter((l) => !l.raw)]) {
      let path = "", pen = "M";
      for (const p of line.points) {
        if (!p || !drawable(p[1])) {
          pen = "M";
          continue;
        }
        path += pen + this.x(p[0]).toFixed(1) + " " + this.y(p[1]).toFixed(1), pen = "L";
      }
      if (pen === "L" && !path.includes("L")) path += "h.1";  // a single point
      const beside = isLoss(line.name) && line.name !== "loss";
      marks.push(drawn("path", {class: "curve" + (line.raw ? " raw" : "") + (beside ? " beside" : ""), d: path, "clip-path": within, stroke: inkOf(line.run), "stroke-linecap": "round"}));
      if (beside && !line.raw)
        for (const p of line.points.length < 60 ? line.points : [])
          if (p && drawable(p[1])) marks.push(drawn("circle", {cx: this.x(p[0]), cy: this.y(p[1]), r: 3, fill: inkOf(line.run)}));
    }
    for (const {run, name, curve, at} of this.curves)  // where a value is no number
      curve.values.forEach((v, i) => {
        if (Number.isFinite(v) || at[i] < first || marks.length > 2000) return;
        const x = this.x(at[i]);
        marks.push(drawn("path", {class: "none", d: "M" + (x - 5) + " " + foot + "h10l-5 -9z"}, drawn("title", {}, run.name + ": " + spoken(name) + " is " + plain(v) + " at step " + curve.steps[i])));
      });
    this.cursor = drawn("line", {class: "cursor", y1: top, y2: foot, visibility: "hidden"});
    this.svg.setAttribute("width", wide), this.svg.setAttribute("height", foot + 24);
    this.svg.replaceChildren(...marks, this.cursor);
    this.point();
  }
  /// The values at the cursor, or the last ones.
  point() {
    const place = shown.cursor;
    this.cursor.setAttribute("visibility", place === null ? "hidden" : "visible");
    if (place !== null) this.cursor.setAttribute("x1", this.x(place)), this.cursor.setAttribute("x2", this.x(place));
    const many = this.key === "loss" || this.runs.length > 1;
    const told = this.curves.map(({run, name, curve, at}) => {
      const i = place === null ? at.length - 1 : nearest(at, place);
      const where = shown.across === "steps" ? "step " + curve.steps[i].toLocaleString("en") : lasting(curve.times[i]);
      return element("li", {}, element("span", {class: "swatch", style: "background:" + inkOf(run)}), many ? run.name + (name === "loss" || name === this.key ? "" : ", " + spoken(name)) + ": " : "",
                     element("b", {}, this.said(curve.values[i])), element("span", {class: "soft"}, " at " + where + this.planned(run)));
    });
    this.detail.replaceChildren(element("ul", {class: "key"}, ...told));
  }
  planned(run) { return this.key === "memory" && run.head.planned > 0 ? "; by its plan " + bytes(run.head.planned) + (run.head.ranks_here > 1 ? " for " + run.head.ranks_here + " ranks" : "") : ""; }
}
)script"
