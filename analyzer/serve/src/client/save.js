// What is shown as files: tables as CSV and Parquet, with the numbers as they were answered, and pictures.

import { svgOf } from "./pen.js";
import { tell } from "./problems.js";

const told = new Map();

/** Notes the rows of a table or a picture, as objects. */
export function keep(id, rows) {
  told.set(id, rows);
  for (const kind of ["csv", "parquet"]) allow(document.querySelector(`[data-saves="${id}.${kind}"]`), id);
}

/** A table without rows has no columns either: there is nothing to be saved. */
function allow(button, id) {
  if (button === null) return;
  button.disabled = (told.get(id) ?? []).length === 0;
  button.title = button.disabled ? "Nothing to save: the table is empty" : `Save as ${button.textContent}`;
}

function text(value) {
  if (value === null || value === undefined) return "";
  const flat = typeof value === "object" ? JSON.stringify(value) : String(value);
  // A spreadsheet must not take a text for a formula.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(flat) ? `'${flat}` : flat;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The names of all columns. */
const columnsOf = (rows) => [...new Set(rows.flatMap((row) => Object.keys(row)))];

/** The rows of a table as a Parquet file, which the server makes of them. */
async function parquet(rows) {
  const columns = columnsOf(rows);
  const answer = await fetch("parquet", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ columns, rows: rows.map((row) => columns.map((column) => row[column] ?? null)) }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.blob();
}

/** The rows of a table as CSV (RFC 4180). */
export function csv(rows) {
  const columns = columnsOf(rows);
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((line) => `${line.map(text).join(",")}\r\n`).join("");
}

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** An SVG picture as a text of its own: with the colours that the page gives it. */
export function svgText(svg) {
  const copy = svg.cloneNode(true);
  const shown = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, at) => {
    const style = getComputedStyle(shown[at]);
    element.setAttribute("fill", style.fill);
    if (element.tagName === "text") element.setAttribute("font-family", "sans-serif");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

async function png(svg) {
  const { width, height } = svg.getBoundingClientRect();
  const image = new Image();
  image.src = `data:image/svg+xml;base64,${btoa(String.fromCodePoint(...new TextEncoder().encode(svgText(svg))))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

const drawn = (name, canvas) => canvas.toBlob((blob) => {
  // Browsers have a largest picture.
  if (blob !== null) download(name, blob);
  else tell("saved", "the picture is empty, or too large for PNG: save it as SVG");
});

/** Adds buttons for a table or picture: what each saves, and how. */
function buttons(of, all) {
  const box = document.createElement("span");
  box.className = "saves";
  for (const [label, act] of Object.entries(all)) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.dataset.saves = `${of.id}.${label.toLowerCase()}`;
    made.title = `Save as ${label}`;
    made.addEventListener("click", act);
    box.append(made);
  }
  (of.closest(".some") ?? of).before(box);
  keep(of.id, told.get(of.id) ?? []);
}

const KINDS = { CSV: "text/csv", SVG: "image/svg+xml" };

/** Saves a text of some kind. */
const kept = (kind, of, make) => () => {
  download(`${of.id}.${kind.toLowerCase()}`, new Blob([make()], { type: KINDS[kind] }));
};

/** Adds buttons to each table and picture. */
export function addButtons() {
  const rows = (of) => told.get(of.id) ?? [];
  const table = (of) => ({
    CSV: kept("CSV", of, () => csv(rows(of))),
    Parquet: async () => {
      try {
        download(`${of.id}.parquet`, await parquet(rows(of)));
      } catch (error) {
        tell("saved", `the table cannot be saved: ${error.message}`);
      }
    },
  });
  for (const one of document.querySelectorAll("table[id]")) buttons(one, table(one));
  for (const canvas of document.querySelectorAll("canvas[id]")) {
    buttons(canvas, {
      SVG: kept("SVG", canvas, () => svgOf(canvas, getComputedStyle(document.body).backgroundColor)),
      PNG: () => drawn(`${canvas.id}.png`, canvas),
    });
  }
  for (const svg of document.querySelectorAll("svg[id]")) {
    buttons(svg, {
      ...table(svg),
      SVG: kept("SVG", svg, () => svgText(svg)),
      PNG: async () => drawn(`${svg.id}.png`, await png(svg)),
    });
  }
}
