// Sorts and filters what is on the page. Everything else works without it.
"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Columns: a click sorts by a column, another one turns the order around.
  for (const table of all("table[data-sorts]")) {
    const body = table.tBodies[0];
    const heads = all("thead th[data-sort]", table);
    const value = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent;
    const sort = (head) => {
      const isNumber = head.dataset.sort === "number";
      const first = isNumber ? "descending" : "ascending";
      const last = isNumber ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? last : first;
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", order);
      const at = head.cellIndex;
      const sign = order === "ascending" ? 1 : -1;
      const compare = (a, b) => isNumber
        ? Number(value(a, at)) - Number(value(b, at))
        : value(a, at).localeCompare(value(b, at), "en", { numeric: true });
      const number = (row) => Number(row.dataset.number);
      const rows = Array.from(body.rows);
      rows.sort((a, b) => sign * compare(a, b) || number(a) - number(b));
      body.append(...rows);
    };
    // On narrow screens each cell has its title beside it.
    const titles = Array.from(table.tHead.rows[0].cells, (head) => head.textContent.trim());
    for (const row of body.rows) {
      Array.from(row.cells).forEach((cell, at) => {
        if (titles[at]) cell.dataset.title = titles[at];
      });
    }
    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(head));
    }
  }

  // The filter: rows with all of the words and the pattern, and what is said of these below.
  const form = document.querySelector("form.filter");
  if (form) {
    const [words, pattern] = [form.elements.words, form.elements.pattern];
    const said = form.querySelector("output");
    const rows = all("#findings tbody tr").map((row) => ({
      row,
      text: row.textContent.toLowerCase(),
      detail: document.getElementById("finding-" + row.dataset.number),
    }));
    const filter = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, text, detail } of rows) {
        const fits = wanted.every((word) => text.includes(word)) &&
          (!pattern.value || row.dataset.pattern === pattern.value);
        row.hidden = !fits;
        if (detail) detail.hidden = !fits;
        shown += fits;
      }
      said.textContent = shown === rows.length ? "" : shown + " of " + rows.length + " shown";
    };
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    filter();
  }

  // A finding that is linked to is opened; on paper all are.
  const findings = all("details.finding");
  const openTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target || target.tagName !== "DETAILS") return;
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", openTarget);
  openTarget();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = findings.filter((one) => !one.open);
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => {
    closed.forEach((one) => { one.open = false; });
  });
  const switcher = document.querySelector("button[data-opens]");
  if (switcher) {
    switcher.hidden = false;
    switcher.addEventListener("click", () => {
      const open = switcher.getAttribute("aria-pressed") !== "true";
      findings.forEach((one) => { one.open = open; });
      switcher.setAttribute("aria-pressed", String(open));
    });
  }
})();
