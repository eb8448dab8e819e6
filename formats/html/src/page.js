// Sorts and filters what is on the page. Everything else works without it.
"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // On narrow screens each cell has its title beside it.
  for (const table of all("table[data-sorts], table[data-tree]")) {
    const titles = Array.from(table.tHead.rows[0].cells, (head) => head.textContent.trim());
    for (const row of table.tBodies[0].rows) {
      Array.from(row.cells).forEach((cell, at) => {
        if (titles[at]) cell.dataset.title = titles[at];
      });
    }
  }

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
    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(head));
    }
  }

  // Rows of little weight are shown when somebody asks, or follows a link to one.
  for (const table of all("table[data-sorts]")) {
    const small = all("tr[data-small]", table);
    if (small.length === 0) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Show " + small.length + " smaller ones";
    const show = (shown) => {
      small.forEach((row) => { row.hidden = !shown; });
      button.hidden = shown;
    };
    button.addEventListener("click", () => show(true));
    const openTarget = () => {
      const row = small.find((one) => one.id && one.id === location.hash.slice(1));
      if (!row) return;
      show(true);
      row.scrollIntoView();
    };
    table.after(button);
    show(false);
    addEventListener("hashchange", openTarget);
    openTarget();
  }

  // The tree of call paths: rows open and close, by mouse and by keyboard, as WAI-ARIA has it for
  // tree grids.
  for (const table of all("table[data-tree]")) {
    const rows = Array.from(table.tBodies[0].rows);
    const level = (row) => Number(row.dataset.level);
    const parents = new Map();
    const above = [];
    for (const row of rows) {
      above.length = level(row) - 1;
      parents.set(row, above.findLast(Boolean));
      above[level(row) - 1] = row;
    }
    const below = (row) => rows.filter((other) => parents.get(other) === row);
    const isOpen = (row) => row.getAttribute("aria-expanded") === "true";
    const show = () => {
      for (const row of rows) {
        const parent = parents.get(row);
        row.hidden = Boolean(parent) && (parent.hidden || !isOpen(parent));
      }
    };
    const focus = (row) => {
      rows.forEach((other) => { other.tabIndex = other === row ? 0 : -1; });
      row.focus();
    };
    const set = (row, open) => {
      if (row.hasAttribute("aria-expanded")) row.setAttribute("aria-expanded", String(open));
      show();
    };
    table.setAttribute("role", "treegrid");
    for (const row of rows) {
      const alike = below(parents.get(row));
      row.setAttribute("aria-level", String(level(row)));
      row.setAttribute("aria-posinset", String(alike.indexOf(row) + 1));
      row.setAttribute("aria-setsize", String(alike.length));
      row.tabIndex = row === rows[0] ? 0 : -1;
      if (below(row).length > 0) row.setAttribute("aria-expanded", String("open" in row.dataset));
      row.addEventListener("click", () => { set(row, !isOpen(row)); focus(row); });
    }
    show();
    table.addEventListener("keydown", (event) => {
      const row = event.target.closest("tbody tr");
      if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
      const shown = rows.filter((other) => !other.hidden);
      const at = shown.indexOf(row);
      const steps = {
        ArrowDown: () => focus(shown[Math.min(at + 1, shown.length - 1)]),
        ArrowUp: () => focus(shown[Math.max(at - 1, 0)]),
        Home: () => focus(shown[0]),
        End: () => focus(shown[shown.length - 1]),
        ArrowRight: () => { if (isOpen(row)) focus(below(row)[0]); else set(row, true); },
        ArrowLeft: () => { if (isOpen(row)) set(row, false); else if (parents.get(row)) focus(parents.get(row)); },
        Enter: () => set(row, !isOpen(row)),
        " ": () => set(row, !isOpen(row)),
      };
      if (!Object.hasOwn(steps, event.key)) return;
      event.preventDefault();
      steps[event.key]();
    });
    const form = document.querySelector("form[data-of-tree]");
    form.elements.spread.addEventListener("change", () => {
      all("[data-spread]", table).forEach((cell) => {
        cell.hidden = cell.dataset.spread !== form.elements.spread.value;
      });
    });
    for (const button of all("button", form)) {
      button.hidden = false;
      button.addEventListener("click", () => rows.forEach((row) => set(row, button.value !== "")));
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
  }

  // The matrix of ranks: which amount is shown, what is below the mouse, and a canvas if it is large.
  const matrix = document.querySelector("figure.matrix");
  if (matrix) {
    const form = document.querySelector("form[data-of-matrix]");
    const said = form.querySelector("output");
    const picker = form.elements.metric;
    const ranks = Number(matrix.dataset.ranks);
    const size = Number(matrix.dataset.rows);
    const cells = new Map();
    for (const cell of matrix.dataset.cells.split(",")) {
      const [from, to, messages, bytes, waiting] = cell.split(" ").map(Number);
      const [row, column] = [Math.floor(from / ranks), Math.floor(to / ranks)];
      cells.set(row * size + column, { row, column, messages, bytes, waiting });
    }
    const canvas = matrix.querySelector("canvas");
    const draw = () => {
      const most = Math.max(...Array.from(cells.values(), (cell) => cell[picker.value]), 0);
      const colour = picker.value === "waiting" ? "--lost" : "--communication";
      const context = canvas.getContext("2d");
      context.clearRect(0, 0, size, size);
      context.fillStyle = getComputedStyle(matrix).getPropertyValue(colour);
      for (const cell of cells.values()) {
        if (cell[picker.value] === 0) continue;
        context.globalAlpha = 0.2 + 0.8 * cell[picker.value] / most;
        context.fillRect(cell.column, cell.row, 1, 1);
      }
    };
    picker.addEventListener("change", () => {
      all("g[data-metric]", matrix).forEach((one) => {
        one.setAttribute("display", one.dataset.metric === picker.value ? "inline" : "none");
      });
      if (canvas) draw();
    });
    if (canvas) {
      canvas.hidden = false;
      draw();
    }
    const ground = canvas || matrix.querySelector(".ground");
    const named = (at) => ranks > 1
      ? "ranks " + at * ranks + "-" + (at * ranks + ranks - 1)
      : "rank " + at;
    const time = (ns) => ns >= 1e9 ? (ns / 1e9).toFixed(2) + " s" : (ns / 1e6).toFixed(3) + " ms";
    matrix.addEventListener("mousemove", (event) => {
      const place = ground.getBoundingClientRect();
      const at = (from, length) => Math.floor((from / length) * size);
      const column = at(event.clientX - place.left, place.width);
      const row = at(event.clientY - place.top, place.height);
      const cell = cells.get(row * size + column);
      const isInside = row >= 0 && column >= 0 && row < size && column < size;
      said.textContent = !isInside ? "" : named(row) + " to " + named(column) + ": " + (!cell
        ? "nothing"
        : cell.messages + " messages, " + cell.bytes + " bytes; waited " + time(cell.waiting) + " for it");
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
  }

  // The filter: rows with all of the words and the pattern, and what is said of these below.
  const form = document.querySelector("form[role=search]");
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
