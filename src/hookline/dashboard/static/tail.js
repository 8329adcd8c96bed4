// New deliveries are announced. They come in by themselves only at the top of the page, while nobody is in the table.
"use strict";
(() => {
  const list = () => document.getElementById("list");
  const link = document.getElementById("show-new");
  const held = document.getElementById("held");
  const button = document.getElementById("hold");
  const mark = document.getElementById("following");
  if (!list()?.dataset.match || !link) return;

  let isFollowing = true;
  try { isFollowing = sessionStorage.getItem("follow") !== "off"; } catch { /* storage is off: it follows */ }
  let newest = []; // what the server said last
  let isLoading = false;
  let again = 0;

  function belongs(each) {
    const wanted = JSON.parse(list().dataset.match);
    return Object.entries(wanted).every(([name, value]) =>
      name === "state" ? each.is.split(" ").includes(value) : each[name] === value);
  }

  // What the table lacks, and whether a row of it has changed since.
  function compared() {
    const rows = $$("tbody tr[data-id]", list());
    const shown = new Map(rows.map((row) => [row.dataset.id, row.dataset.state]));
    const oldest = rows.length && list().dataset.hasMore ? rows[rows.length - 1].dataset.id : "";
    const fresh = newest.filter((each) => belongs(each) && !shown.has(each.id) && each.id > oldest);
    const hasGap = newest.length >= 50 && !newest.some((each) => shown.has(each.id));
    const hasChanged = newest.some((each) => shown.has(each.id) && shown.get(each.id) !== each.state);
    return { fresh: fresh.length, hasGap, hasChanged };
  }

  // Why nothing moves now; empty if it may.
  function reason() {
    if (!isFollowing) return "Held still";
    const table = $("table", list());
    if (table?.matches(":hover")) return "Held still while your cursor is in the table";
    if (table?.contains(document.activeElement)) return "Held still while a row has the focus";
    const selection = getSelection();
    if (selection && !selection.isCollapsed && list().contains(selection.anchorNode)) return "Held still while text is selected";
    if (scrollY > 8) return "Held still until you are at the top again";
    if (isLoading) return " ";
    return "";
  }

  function look() {
    const { fresh, hasGap, hasChanged } = compared();
    const why = reason();
    link.hidden = !fresh || !why || isLoading;
    $(".words", link).textContent = `${fresh}${hasGap ? " or more" : ""} new: show them`;
    held.textContent = fresh && !isLoading ? why.trim() : "";
    if (!why && (fresh || hasChanged) && Date.now() >= again) load();
  }

  async function load() {
    if (isLoading) return;
    isLoading = true;
    again = Date.now() + 1900; // at most once for what the server says
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = page.getElementById("list");
      // Somebody may have come in while it was read.
      if (answer.ok && next && (asked || !reason().trim())) { list().replaceWith(next); asked = false; }
    } catch { again = Date.now() + 10000; }
    isLoading = false;
    look();
  }

  let asked = false;
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    asked = true;
    scrollTo(0, 0);
    load();
  });

  function show() {
    $(".words", button).textContent = isFollowing ? "Hold still" : "Follow";
    $("use", button).setAttribute("href", isFollowing ? "#icon-pause" : "#icon-down");
    $(".words", mark).textContent = isFollowing ? "Following" : "Held";
    mark.classList.toggle("stale", !isFollowing);
  }
  button.addEventListener("click", () => {
    isFollowing = !isFollowing;
    try { sessionStorage.setItem("follow", isFollowing ? "on" : "off"); } catch { /* it is kept for this page only */ }
    show();
    look();
  });

  document.addEventListener("hookline:live", (event) => {
    const html = event.detail.newest;
    if (html !== undefined) {
      const page = new DOMParser().parseFromString(`<ol>${html}</ol>`, "text/html");
      newest = $$("li", page).map((each) => ({ ...each.dataset }));
    }
    look();
  });
  for (const name of ["pointerover", "focusin", "focusout", "scroll", "selectionchange"]) {
    let timer = 0;
    document.addEventListener(name, () => { clearTimeout(timer); timer = setTimeout(look, 100); }, { passive: true });
  }
  show();
})();
