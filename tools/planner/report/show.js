R"script(// Reads the plans that the tool put into the page, and shows the chosen one.
const plans = JSON.parse(byId("plans").textContent).map((json) => new Plan(json));

function show(plan) {
  for (const part of [showHead, showTotals, showLinks, showTree, showTimeline, showMemory, showArena, showTensors]) part(plan);
}
plans.forEach((p, i) => byId("plan").append(element("option", {value: i}, p.meshText() + p.stageText("; ") + " · " + brief(p.program))));
byId("choose").hidden = plans.length < 2;
byId("plan").onchange = () => show(plans[Number(byId("plan").value)]);
if (plans.length > 0) show(plans[0]);
let width = window.innerWidth;
window.addEventListener("resize", () => {  // pictures are drawn as wide as the page; a phone that only shows its bar keeps what is open
  if (width === window.innerWidth || plans.length === 0) return;
  width = window.innerWidth;
  const plan = plans[Number(byId("plan").value)];
  for (const part of [showLinks, showTimeline, showMemory, showArena]) part(plan);
});
)script"
