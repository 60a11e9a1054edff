// Tabs, the chart as a way to choose a date, how wide figures may be, and what the custodian's desk says. Everything
// else is Shiny's own.
(function () {
  "use strict";
  document.documentElement.dataset.shinyBusyPulse = "true"; // a line at the top while something is computed

  // Tabs: arrows move, as everywhere.
  let wish = null, done = [], idle = true; // a button that leads to the next tab when what it does is done
  const tabs = Array.from(document.querySelectorAll("[role=tab]"));
  function show(tab, focus) {
    wish = null;
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    // Shiny looks again what is seen: by itself it would leave what lies below the window as it was, and grey.
    if (window.Shiny && window.Shiny.bindAll) window.Shiny.bindAll(document.getElementById(tab.getAttribute("aria-controls")));
    try { sessionStorage.setItem("tab", tab.id); } catch (e) { /* private windows may have none */ }
  }
  tabs.forEach(function (tab, k) {
    tab.addEventListener("click", function () { show(tab, false); });
    tab.addEventListener("keydown", function (event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const to = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1
        : step ? (k + step + tabs.length) % tabs.length : null;
      if (to === null) return;
      event.preventDefault();
      show(tabs[to], true);
    });
  });

  function goOn() {
    if (!wish || (wish.dataset.done && !done.includes(wish.dataset.done))) return;
    const tab = document.getElementById(wish.dataset.next);
    show(tab, false);
    document.getElementById(tab.getAttribute("aria-controls")).focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
  document.addEventListener("click", function (event) {
    const button = event.target.closest && event.target.closest("button[data-next]");
    if (!button) return;
    wish = button;
    goOn();
  });

  // The chart: a line follows the pointer to the nearest period; letting go chooses it.
  let pressed = false;
  function nearest(chart, event) {
    const box = chart.querySelector("img").getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const at = chart.dataset.at.split(" ").map(Number);
    let best = Number(chart.dataset.fewest);
    for (let k = best; k < at.length; k++) if (Math.abs(at[k] - share) < Math.abs(at[best] - share)) best = k;
    return { position: best, share: at[best], box: box };
  }
  function guide(chart, event) {
    const found = nearest(chart, event);
    const line = chart.querySelector(".guide");
    line.hidden = false;
    line.style.left = found.share * found.box.width + "px";
    line.style.top = chart.dataset.top * found.box.height + "px";
    line.style.height = (chart.dataset.bottom - chart.dataset.top) * found.box.height + "px";
    line.classList.toggle("left", found.share > 0.6);
    line.firstElementChild.textContent = "begins " + JSON.parse(chart.dataset.periods)[found.position];
    return found.position;
  }
  function choose(position) { window.Shiny.setInputValue("chosen", position, { priority: "event" }); }
  document.addEventListener("change", function (event) { // by somebody: what the page itself shows there is no choice
    if (event.target.id === "date" && event.target.value) choose(Number(event.target.value));
    const what = event.target.dataset.column;
    if (what) window.Shiny.setInputValue("column", [what, event.target.value], { priority: "event" });
  });
  const chartOf = (event) => event.target.closest && event.target.closest(".chart[data-at]");
  document.addEventListener("pointerdown", function (event) {
    const chart = chartOf(event);
    if (!chart || event.button !== 0) return;
    pressed = true;
    guide(chart, event);
  });
  document.addEventListener("pointermove", function (event) {
    const chart = chartOf(event);
    document.querySelectorAll(".guide").forEach(function (line) { if (!chart) line.hidden = true; });
    if (chart && (pressed || event.pointerType === "mouse")) guide(chart, event);
  });
  document.addEventListener("pointerup", function (event) {
    const chart = chartOf(event);
    if (chart && pressed) choose(guide(chart, event));
    pressed = false;
  });
  document.addEventListener("pointercancel", function () { pressed = false; });

  // What the custodian's desk says: what is wrong beside its field, what can be pressed, what the slider offers.
  function place(id) {
    const field = document.getElementById(id);
    return field && (field.closest(".drop, .beside") || field);
  }
  function tellProblems(problems) {
    for (const old of document.querySelectorAll(".problem[data-about]")) {
      if (problems[old.dataset.about] === old.textContent) continue;
      const field = document.getElementById(old.dataset.about);
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
      old.remove();
    }
    for (const id of Object.keys(problems)) {
      const at = place(id);
      if (!at || document.getElementById("about-" + id)) continue;
      const said = document.createElement("p");
      said.className = "problem";
      said.id = "about-" + id;
      said.dataset.about = id;
      said.setAttribute("role", "alert");
      said.textContent = problems[id];
      at.insertAdjacentElement("afterend", said);
      const field = document.getElementById(id);
      if (/^(INPUT|SELECT)$/.test(field.tagName) && field.type !== "file") field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", said.id);
      for (let box = at.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    }
  }
  function follow(slider) { // the slider shows the number in its field
    const grid = JSON.parse(slider.dataset.grid || "[]");
    const wished = Number(document.getElementById(slider.dataset.for).value.replace(",", "."));
    let best = 0;
    grid.forEach(function (value, k) { if (Math.abs(value - wished) < Math.abs(grid[best] - wished)) best = k; });
    slider.max = Math.max(0, grid.length - 1);
    slider.value = best;
    slider.disabled = grid.length < 2;
    slider.setAttribute("aria-valuetext", "epsilon " + (wished || grid[best] || 0));
  }
  for (const slider of document.querySelectorAll("input[type=range][data-for]")) {
    const field = document.getElementById(slider.dataset.for);
    slider.addEventListener("input", function () {
      field.value = JSON.parse(slider.dataset.grid)[slider.value];
      slider.setAttribute("aria-valuetext", "epsilon " + field.value);
    });
    slider.addEventListener("change", function () { window.jQuery(field).trigger("change"); });
    window.jQuery(field).on("input change", function () { follow(slider); });
  }
  document.addEventListener("click", function (event) { // not disabled: Tab would pass by a button that is just waiting
    const button = event.target.closest && event.target.closest("button[aria-disabled=true]");
    if (button) event.stopImmediatePropagation();
  }, true);
  let opened = {}, problems = {}, notSent = {};
  function told(state) {
    problems = state.problems;
    tellProblems({ ...problems, ...notSent });
    done = state.done;
    for (const tab of tabs) {
      const isDone = done.includes(tab.id), step = tab.querySelector(".step");
      tab.classList.toggle("done", isDone);
      tab.querySelector(".sr-only").hidden = !isDone;
      if (step) step.textContent = isDone ? "✓" : step.dataset.number;
    }
    goOn();
    if (state.idle && !idle && wish && wish.id !== "to_confirm") wish = null; // what it began came to nothing: why is said
    idle = state.idle;
    for (const id of Object.keys(state.enabled)) {
      document.getElementById(id).setAttribute("aria-disabled", String(!state.enabled[id]));
    }
    for (const id of Object.keys(state.shown)) document.getElementById(id).hidden = !state.shown[id];
    for (const id of Object.keys(state.opened)) {
      if (opened[id] !== state.opened[id]) document.getElementById(id).open = state.opened[id];
    }
    opened = state.opened;
    for (const id of Object.keys(state.grid)) {
      const slider = document.getElementById(id), grid = JSON.stringify(state.grid[id]);
      if (slider.dataset.grid !== grid) slider.dataset.grid = grid;
      if (document.activeElement !== slider) follow(slider);
    }
  }
  document.addEventListener("change", function (event) { // a file that is too large is not sent at all
    const field = event.target, file = field.files && field.files[0];
    notSent = {}; // said until something else is done, whatever the program tells meanwhile
    if (!file || !field.dataset.largest || file.size <= Number(field.dataset.largest)) return;
    event.stopImmediatePropagation();
    field.value = "";
    notSent = { [field.id]: field.dataset.tooLarge };
    tellProblems({ ...problems, ...notSent });
  }, true);

  // Figures are drawn for a desk or for a phone.
  const narrow = window.matchMedia("(max-width: 40rem)");
  function tellWidth() { window.Shiny.setInputValue("narrow", narrow.matches); }
  window.jQuery(document).on("shiny:connected", function () {
    if (document.body.dataset.program === "custodian") window.Shiny.addCustomMessageHandler("desk", told);
    tellWidth();
    narrow.addEventListener("change", tellWidth);
    let last = null;
    try { last = sessionStorage.getItem("tab"); } catch (e) { /* as above */ }
    const tab = last && document.getElementById(last);
    if (tab) show(tab, false);
  });
  window.jQuery(document).on("shiny:disconnected", function () {
    const gone = document.createElement("p");
    gone.className = "gone";
    gone.setAttribute("role", "alert");
    const program = document.body.dataset.program || "analyst";
    gone.textContent = program === "custodian"
      ? "This page has lost the console. What was under way goes on if the program still runs: load the page again. If it has stopped, start it with dpsc console custodian."
      : "The console has stopped. Start it again with dpsc console analyst.";
    document.body.appendChild(gone);
  });
})();
