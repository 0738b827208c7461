R"script(// The head of the report: the program, its mesh, the figures that one looks for first, and communication by phase and axis.
function showHead(plan) {
  const name = byId("name");
  name.textContent = brief(plan.program);
  name.title = plan.program;
  document.title = brief(plan.program) + " on " + plan.meshText();
  byId("mesh").replaceChildren(...plan.mesh.map((a) => element("span", {class: "chip"}, a.axis + " = " + a.ranks)), counted(plan.ranks, "rank") + plan.stageText("; "));
  const p = plan.pipeline;
  byId("stages").hidden = !p || !plan.schedule_svg;
  if (byId("stages").hidden) return byId("stages-box").replaceChildren(), showFigures(plan);
  byId("stages-note").textContent = "This plan is of " + p.axis + " " + p.stage + ", with layers " + p.layers + " and at most " + p.in_flight + " in flight. " +
    (plan.machine ? "Predicted for " + plan.machine.name + "." : "As if forward, backward and weights took equally long.");
  byId("stages-box").replaceChildren(document.importNode(new DOMParser().parseFromString(plan.schedule_svg, "image/svg+xml").documentElement, true));
  showFigures(plan);
}
function showFigures(plan) {

  const all = phases.flatMap((p) => plan.totals[p]);
  const starts = plan.events.filter((e) => plan.collective(e)).map((e) => plan.node(e));
  const sum = (of) => starts.reduce((n, node) => n + node.times * of(node), 0);
  const calls = sum(() => 1), sent = sum((node) => node.transition.sent);
  const figure = (what, value, title, more) => element("div", {}, element("dt", {}, what), element("dd", {title}, value, element("small", {}, more)));
  const figures = [
    figure("Calls", calls.toLocaleString("en"), null, counted(sum((node) => node.transition.logical), "collective") + " a step"),
    figure("Sent per rank", bytes(sent), exact(sent), [...new Set(all.map((t) => t.axis))].join(", ") || "no axis"),
    figure("Peak memory", bytes(plan.memory.peak), exact(plan.memory.peak), bytes(plan.memory.arena) + " of it shared over time" + onCpu(plan.memory.cpu)),
    figure("Computation", flops(plan.flops), exact(plan.flops, "floating point operations"), "per rank and step"),
  ];
  const predicted = stepSeconds(plan);
  if (predicted !== null)
    figures.unshift(figure("Predicted step", seconds(predicted), predicted + " s", plan.machine ? "on " + plan.machine.name : "by the cost model"));
  byId("figures").replaceChildren(...figures);
}

/// What a process takes on the CPU: tensors, rounding to huge pages, scratch of kernels.
function onCpu(cpu) {
  return cpu ? "; on the CPU at most " + bytes(cpu.process) + ", of it " + bytes(cpu.rounding) + " of rounding and " + bytes(cpu.scratch) + " of scratch" : "";
}

/// The predicted seconds of a step, where a machine was named.
function stepSeconds(plan) {
  if (typeof plan.seconds === "number") return plan.seconds;
  if (!plan.timeline || plan.timeline.length === 0) return null;
  return plan.timeline.reduce((end, t) => Math.max(end, t.end), 0);
}

function showTotals(plan) {
  const body = element("tbody");
  for (const phase of phases)
    for (const [i, t] of plan.totals[phase].entries()) {
      const first = i === 0 ? element("th", {scope: "row"}, swatch(phase), phase) : element("th", {scope: "row"}, "");
      body.append(element("tr", {}, first, element("td", {}, t.axis), cell(t.collectives.toLocaleString("en")), cell(t.calls.toLocaleString("en")),
                          cell(sized(t.message)), cell(sized(t.sent))));
    }
  if (body.children.length === 0) body.append(element("tr", {}, element("td", {colspan: 6}, "Nothing is moved.")));
  byId("totals-table").replaceChildren(columnHeads(["Phase", "Axis", "Collectives", "Calls", "Message", "Sent"], [2, 3, 4, 5]), body);
  const alike = plan.redundant.filter((r) => r.share > 0 && plan.mesh.find((a) => a.axis === r.axis).ranks > 1);
  byId("notes").replaceChildren(...alike.map((r) => {
    const percent = Number((100 * r.share).toPrecision(2));
    return element("p", {class: "soft"}, percent + " % of the computation is done alike by every rank of " + r.axis + ".");
  }));
  const {start, counter, inputs, end} = plan.agreement;
  if (counter.calls > 0)
    byId("notes").append(element("p", {class: "soft"}, "Beside the program all ranks compare where they are: " + bytes(counter.message) + " before each step, " +
      (inputs.calls > 0 ? bytes(inputs.message) + " of inputs before steps 1, 2, 4, 8 and so on, " : "") + bytes(start.message) + " where an executor begins, " + bytes(end.message) + " at the end of the run."));
}
)script"
