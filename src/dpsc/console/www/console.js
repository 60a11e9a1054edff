// Tabs, the chart as a way to choose a date, and how wide figures may be. Everything else is Shiny's own.
(function () {
  "use strict";
  document.documentElement.dataset.shinyBusyPulse = "true"; // a line at the top while something is computed

  // Tabs: arrows move, as everywhere.
  const tabs = Array.from(document.querySelectorAll("[role=tab]"));
  function show(tab, focus) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    window.jQuery(document.getElementById(tab.getAttribute("aria-controls"))).trigger("shown"); // Shiny draws what is seen
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
    if (chart && pressed) window.Shiny.setInputValue("clicked", guide(chart, event), { priority: "event" });
    pressed = false;
  });
  document.addEventListener("pointercancel", function () { pressed = false; });

  // Figures are drawn for a desk or for a phone.
  const narrow = window.matchMedia("(max-width: 40rem)");
  function tellWidth() { window.Shiny.setInputValue("narrow", narrow.matches); }
  window.jQuery(document).on("shiny:connected", function () {
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
    gone.textContent = "The console has stopped. Start it again with dpsc console analyst.";
    document.body.appendChild(gone);
  });
})();
