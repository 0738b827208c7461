R"script(// The data of runs: scripts beside this page, which are loaded again and again.
// What is said by a script goes to whoever loads it.
const listening = new Map();
const said = (what) => listening.get(document.currentScript)?.push(what);
const run = (name) => said(name), head = (facts) => said(facts), row = (numbers) => said(numbers), more = () => said(null);

/// What a script says, or nothing where there is none.
let loads = 0;
function load(path) {
  return new Promise((done) => {
    const script = element("script", {src: path + "?" + ++loads}), all = [];
    const end = (result) => { listening.delete(script), script.remove(), done(result); };
    listening.set(script, all);
    script.onload = () => end(all);
    script.onerror = () => end(null);
    document.head.append(script);
  });
}

/// {name: {steps, times, values}} of a run, as far as it is read.
class Run {
  constructor(name, index) { Object.assign(this, {name, index, head: null, chosen: true, asked: false, there: false}), this.forget(); }
  forget() { this.curves = new Map(), this.file = 0, this.rows = 0, this.begin = null, this.last = null; }
  path(file) { return encodeURIComponent(this.name) + "/" + file; }
  /// Reads what is new. Whether anything is.
  async read() {
    this.asked = true;
    const heads = await load(this.path("head.js")), facts = heads && heads.at(-1);
    if (!facts) {
      const was = this.there;
      this.there = this.there && heads !== null;
      return was !== this.there;
    }
    let changed = !this.there;
    this.there = true;
    if (!this.head || facts.started !== this.head.started) this.head = facts, this.forget(), changed = true;
    for (;;) {
      const rows = await load(this.path("rows-" + String(this.file).padStart(5, "0") + ".js"));
      if (rows === null || rows.length <= this.rows) return changed;  // read while it was written: the next time
      changed = true;
      for (const numbers of rows.slice(this.rows)) numbers !== null && this.add(numbers);
      this.rows = rows.length;
      if (rows.at(-1) !== null) return changed;
      ++this.file, this.rows = 0;  // it goes on in the next file
    }
  }
  add(numbers) {
    const {step, time} = numbers;
    this.begin = this.begin ?? time;
    this.last = numbers;
    for (const [name, value] of Object.entries(numbers)) {
      if (name === "step" || name === "time" || typeof value !== "number") continue;
      let curve = this.curves.get(name);
      if (!curve) this.curves.set(name, curve = {steps: [], times: [], values: []});
      curve.steps.push(step), curve.times.push(time - this.begin), curve.values.push(value);
    }
  }
  latest(name) { return this.curves.get(name)?.values.at(-1); }
  /// How long ago the last row was written, in seconds.
  age() { return this.last ? Date.now() / 1000 - this.last.time : Infinity; }
  goesOn() { return this.age() < Math.max(30, 10 * (this.latest("seconds") || 0)); }
}
)script"
