// Everything here is a comfort: each page works without it.
"use strict";
const root = document.documentElement;
root.classList.add("js");
const $ = (selector, from = document) => from.querySelector(selector);
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

// --- times -----------------------------------------------------------------------------------------------
// Relative times go on as text; nothing else of the page moves.

function about(seconds) {
  seconds = Math.max(0, seconds);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function tick() {
  const now = Date.now() / 1000;
  for (const time of $$("time[data-rel]")) {
    const at = Date.parse(time.dateTime) / 1000;
    const text = time.dataset.rel === "ago" ? `${about(now - at)} ago` : at - now >= 1 ? `in ${about(at - now)}` : "now";
    if (time.textContent !== text) time.textContent = text;
  }
}
setInterval(() => document.hidden || tick(), 10000);

// --- menus, copying --------------------------------------------------------------------------------------

addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    navigator.clipboard?.writeText(copy.dataset.copy);
    copy.dataset.done = "";
    setTimeout(() => delete copy.dataset.done, 1500);
  }
  for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// --- selecting -------------------------------------------------------------------------------------------
// A box in the head of a table selects its rows. The bar below says how many, and what would be done.

function selected(form) {
  const boxes = $$("tbody input[type=checkbox]", form);
  const chosen = boxes.filter((box) => box.checked);
  for (const box of boxes) box.closest("tr").setAttribute("aria-selected", box.checked);
  const all = $("thead input[type=checkbox]", form);
  if (all) { all.checked = chosen.length > 0 && chosen.length === boxes.length; all.indeterminate = chosen.length > 0 && !all.checked; }
  for (const said of $$("[data-selected]", form)) said.textContent = chosen.length;
  for (const button of $$("[data-needs-selection]", form)) button.disabled = button.dataset.readonly !== undefined || chosen.length === 0;
}
addEventListener("change", (event) => {
  const form = event.target.closest("form[data-select]");
  if (!form || event.target.type !== "checkbox") return;
  if (event.target.closest("thead")) for (const box of $$("tbody input[type=checkbox]", form)) box.checked = event.target.checked;
  selected(form);
});

// --- keys ------------------------------------------------------------------------------------------------

let isGoing = false;
const places = { o: "/", e: "/endpoints", d: "/deliveries", l: "/dead-letters" };

function keysAreOff() { try { return localStorage.getItem("keys") === "off"; } catch { return false; } }

function row() { return $("table[data-rows] tbody tr.cursor"); }

function move(step) {
  const rows = $$("table[data-rows] tbody tr");
  if (!rows.length) return;
  const from = rows.findIndex((each) => each.classList.contains("cursor"));
  const to = Math.max(0, Math.min(rows.length - 1, from + step));
  rows[from]?.classList.remove("cursor");
  rows[to].classList.add("cursor");
  rows[to].querySelector("a")?.focus();
}

addEventListener("keydown", (event) => {
  if (event.target.closest?.("input:not([type=checkbox]), select, textarea") || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (keysAreOff() && event.key !== "Escape") return;
  if (isGoing) {
    isGoing = false;
    if (places[event.key]) { event.preventDefault(); location.assign(places[event.key]); }
    return;
  }
  switch (event.key) {
    case "/": event.preventDefault(); $("#find")?.focus(); break;
    case "j": move(1); break;
    case "k": move(-1); break;
    case "x": { const box = row() && $("input[type=checkbox]", row()); if (box) box.click(); break; }
    case "r": { const link = (row() && $("[data-key=r]", row())) || $("main [data-key=r]"); if (link) link.click(); break; }
    case "f": $("[data-key=f]")?.click(); break;
    case "g": isGoing = true; setTimeout(() => (isGoing = false), 1500); break;
    case "?": location.assign("/keyboard"); break;
    case "Escape":
      for (const menu of $$("details.menu[open]")) { menu.open = false; $("summary", menu).focus(); }
      break;
  }
});

// --- live ------------------------------------------------------------------------------------------------
// Regions are swapped when nobody is in them: under the pointer, with focus, with a selection or an open menu they wait.

const waiting = new Map();
let source = null;
let heardAt = Date.now();
let wait = 1000;

function isBusy(region) {
  if (region.matches(":hover") && region.closest("[data-calm]")) return true;
  if (region.contains(document.activeElement)) return true;
  const selection = getSelection();
  if (selection && !selection.isCollapsed && region.contains(selection.anchorNode)) return true;
  return Boolean($("details.menu[open]", region));
}

function swap(id, html) {
  const region = document.getElementById(id);
  if (!region) return;
  if (isBusy(region) || region.matches(":hover")) { waiting.set(id, html); return; }
  waiting.delete(id);
  const headline = $("h1", region)?.textContent;
  const open = new Set($$("details[open] > summary", region).map((each) => each.textContent));
  region.innerHTML = html;
  for (const summary of $$("details > summary", region)) if (open.has(summary.textContent)) summary.parentElement.open = true;
  const said = $("h1", region)?.textContent;
  if (said && headline && said !== headline) document.title = document.title.replace(/^.*?(?= · |$)/, said);
  region.classList.toggle("calm", id === "verdict" && !$(".trouble", region));
  window.htmx?.process(region);
}

function settle() { for (const [id, html] of waiting) swap(id, html); }
addEventListener("pointerout", () => setTimeout(settle, 50));
addEventListener("focusout", () => setTimeout(settle, 50));

function age() {
  const seconds = Math.round((Date.now() - heardAt) / 1000);
  const mark = $("#live");
  const strip = $("#stale");
  if (!mark) return;
  const isOld = seconds >= 10;
  mark.classList.toggle("stale", isOld);
  $(".said", mark).textContent = isOld ? `${seconds} s old` : "Live";
  if (strip) { strip.hidden = seconds < 30; $(".said", strip).textContent = `No news from the server for ${about(seconds)}.`; }
}

function listen() {
  const name = document.body?.dataset.live;
  if (!name || document.hidden || source) return;
  source = new EventSource(`/live?page=${encodeURIComponent(name)}`);
  source.addEventListener("regions", (event) => {
    const { regions, is_stale: isStale } = JSON.parse(event.data);
    if (!isStale) heardAt = Date.now();
    wait = 1000;
    for (const [id, html] of Object.entries(regions)) swap(id, html);
    age();
    document.dispatchEvent(new CustomEvent("hookline:live", { detail: regions }));
  });
  source.addEventListener("ended", () => location.reload());
  source.onerror = () => {
    hush();
    setTimeout(listen, wait * (0.5 + Math.random()));
    wait = Math.min(30000, wait * 2);
  };
}

function hush() { source?.close(); source = null; }

addEventListener("visibilitychange", () => { if (document.hidden) hush(); else { tick(); listen(); } });
addEventListener("pagehide", hush);
addEventListener("DOMContentLoaded", () => {
  if (document.body.dataset.live) { listen(); setInterval(age, 1000); }
  for (const form of $$("form[data-select]")) selected(form);
  $("form[data-submit-at-once]")?.requestSubmit();
});
