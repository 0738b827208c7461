R"script(// Elements of a page, and numbers in human units. All data enters the page as text, never as markup.
const byId = (id) => document.getElementById(id);

/// element("td", {class: "number", title: "5 B"}, "5 B"): children are elements or text.
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) e.setAttribute(key, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}
function drawn(name, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) e.setAttribute(key, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

const words = (x, y, text, attributes = {}) => drawn("text", {x, y, ...attributes}, text);

function scaled(n, step, units) {
  let unit = 0;
  while (Math.abs(n) >= step && unit < units.length - 1) n /= step, ++unit;
  const digits = Number.isInteger(n) || Math.abs(n) >= 100 ? 0 : 1;
  return n.toFixed(digits) + " " + units[unit];
}
const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const exact = (n, unit = "bytes") => Math.round(n).toLocaleString("en") + " " + unit;
function seconds(s) {
  if (s === 0) return "0 s";
  const [factor, unit] = s >= 1 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : s >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return Number((s * factor).toPrecision(3)) + " " + unit;
}
const counted = (n, one, many = one + "s") => n.toLocaleString("en") + " " + (n === 1 ? one : many);

/// A cell of a table with a number in it.
const cell = (...children) => element("td", {class: "number"}, ...children);
const swatch = (name) => element("span", {class: "swatch", style: "background:" + colour(name)});
const columnHeads = (names, numbers) =>
  element("thead", {}, element("tr", {}, ...names.map((n, i) => element("th", {scope: "col", class: numbers.includes(i) ? "number" : null}, n))));

/// Bytes as text, the exact number as its title.
const sized = (n) => element("span", {title: exact(n)}, bytes(n));

const spoken = (word) => word.replaceAll("_", " ");
const colour = (name) => "var(--" + name.replaceAll(" ", "-") + ")";

/// About `wanted` round numbers from 0 to `most`; base 2 for bytes.
function ticks(most, wanted, binary) {
  if (!(most > 0)) return [0];
  let step = binary ? 2 ** Math.floor(Math.log2(most / wanted)) : 10 ** Math.floor(Math.log10(most / wanted));
  for (const factor of binary ? [1, 2, 4] : [1, 2, 5, 10])
    if (most / (step * factor) <= wanted) {
      step *= factor;
      break;
    }
  const result = [];
  for (let t = 0; t <= most * 1.0001; t += step) result.push(t);
  return result;
}
const widthOf = (box) => Math.max(280, Math.floor(box.clientWidth));
)script"
