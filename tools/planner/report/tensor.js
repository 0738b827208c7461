R"script(// How a tensor lies on the mesh: the picture that the tool drew, what each axis does to it, and what each rank holds.

/// The picture as an element; the tool has escaped the names in it.
function tensorPicture(plan, tensor) {
  return document.importNode(new DOMParser().parseFromString(plan.pictures[tensor.text].svg, "image/svg+xml").documentElement, true);
}
const coordinates = (plan, rank) => {
  const result = {};
  for (const a of [...plan.mesh].reverse()) result[a.axis] = rank % a.ranks, rank = Math.floor(rank / a.ranks);
  return result;
};

function axisWords(tensor, axis) {
  const dim = tensor.shape.findIndex((d) => d.axes.includes(axis));
  if (dim >= 0) {
    const order = tensor.shape[dim].order;
    return "Split<" + dim + ">: each rank holds its slice of dimension " + dim + (order ? ", whose elements stand in " + order.how + " order for " + order.axis : "");
  }
  const placed = tensor.placements.find((p) => p.axis === axis);
  if (!placed) return "Invariant: every rank holds the whole and does the same with it";
  if (placed.placement === "Broadcast") return "Broadcast: every rank holds the whole and uses it differently, so its gradient is a pending sum";
  if (placed.placement === "Partial") return "Partial: each rank holds a term, the value is their sum; drawn hatched";
  return placed.placement + ": only these coordinates hold it";
}

function showTensor(plan, tensor) {
  byId("tensor-type")
    .replaceChildren(
      element("code", {}, tensor.text), " · ", element("span", {title: exact(tensor.bytes)}, bytes(tensor.bytes) + " on each rank that holds it"));
  byId("tensor-axes").replaceChildren(...plan.mesh.map((a) => element("li", {}, element("b", {}, a.axis), " · " + axisWords(tensor, a.axis))));
  byId("tensor-box").replaceChildren(tensorPicture(plan, tensor));
  const listed = plan.pictures[tensor.text].holds;
  const head = element("tr", {}, ...["Rank", ...plan.mesh.map((a) => a.axis), "Holds", "Bytes"].map((h) => element("th", {scope: "col"}, h)));
  const term = tensor.placements.some((p) => p.placement === "Partial") ? "a term of " : "";
  const rows = listed.map((held, rank) => {
    const at = coordinates(plan, rank), cells = plan.mesh.map((a) => element("td", {}, String(at[a.axis])));
    cells.push(element("td", {class: "mono"}, held ? term + held : "nothing"));
    cells.push(element("td", {}, held ? sized(tensor.bytes) : "0 B"));
    return element("tr", {}, element("th", {scope: "row"}, String(rank)), ...cells);
  });
  if (plan.ranks > listed.length)
    rows.push(element("tr", {}, element("td", {colspan: plan.mesh.length + 3}, counted(plan.ranks - listed.length, "more rank"))));
  byId("tensor-table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

function showTensors(plan) {
  const list = byId("tensor"), tensors = [];
  list.replaceChildren();
  const group = (label, entries) => {
    if (entries.length === 0) return;
    const options = entries.map(([name, tensor]) => element("option", {value: tensors.push(tensor) - 1}, name + "  " + tensor.text));
    list.append(element("optgroup", {label}, ...options));
  };
  for (const [role, label] of [["parameter", "Parameters"], ["input", "Inputs"], ["state", "Optimizer state"]])
    group(label, plan.members.filter((m) => m.role === role).map((m) => [plan.member(m.path), m]));
  const made = plan.events.filter((e) => e.kind === "compute" || plan.collective(e)).flatMap((e) => plan.together(plan.node(e)));
  for (const phase of phases)
    group("Made in " + phase, made.filter((n) => n.phase === phase).flatMap((n) => n.results.map((r) => [plan.called(n), plan.values[r]])));
  list.onchange = () => showTensor(plan, tensors[Number(list.value)]);
  if (tensors.length > 0) list.value = 0, list.onchange();
}
)script"
