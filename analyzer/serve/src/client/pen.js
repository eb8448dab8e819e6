// Pictures: painted on a canvas for the screen, and as SVG to be saved.

const pictures = new Map();
const FONT = 12;

/** Paints a picture of so many lines of pixels on a canvas. `paint` gets a pen, and the size. */
export function onCanvas(canvas, tall, paint) {
  const [wide, scale] = [canvas.clientWidth, devicePixelRatio];
  canvas.style.height = `${tall}px`;
  [canvas.width, canvas.height] = [Math.round(wide * scale), Math.round(tall * scale)];
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = `${FONT}px system-ui, sans-serif`;
  paint(pen, wide, tall);
  pictures.set(canvas.id, { paint, wide, tall });
}

/** The picture that a canvas shows, as SVG; `back` is its ground. */
export function svgOf(canvas, back) {
  const found = pictures.get(canvas.id);
  if (!found) return "";
  const pen = new SvgPen();
  found.paint(pen, found.wide, found.tall);
  return pen.text(found.wide, found.tall, back);
}

const short = (number) => String(Math.round(number * 100) / 100);
const safe = (text) => String(text).replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

/** What pictures need of a canvas's pen, written down. */
class SvgPen {
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  textAlign = "left";
  textBaseline = "middle";
  #parts = [];
  #path = "";

  #add(name, attributes, text = null) {
    const list = Object.entries(attributes).map(([key, value]) => ` ${key}="${typeof value === "number" ? short(value) : safe(value)}"`);
    this.#parts.push(text === null ? `<${name}${list.join("")}/>` : `<${name}${list.join("")}>${safe(text)}</${name}>`);
  }

  #fill() {
    return { fill: this.fillStyle.trim(), ...(this.globalAlpha < 1 ? { "fill-opacity": this.globalAlpha } : {}) };
  }

  fillRect(x, y, width, height) {
    if (width > 0 && height > 0) this.#add("rect", { x, y, width, height, ...this.#fill() });
  }

  strokeRect(x, y, width, height) {
    this.#add("rect", { x, y, width, height, fill: "none", stroke: this.strokeStyle.trim(), "stroke-width": this.lineWidth });
  }

  fillText(text, x, y, most = Infinity) {
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    const isLong = String(text).length * FONT * 0.55 > most;
    this.#add("text", {
      x, y: y + FONT * 0.35, "text-anchor": anchor, ...this.#fill(),
      ...(isLong ? { textLength: Math.max(1, most), lengthAdjust: "spacingAndGlyphs" } : {}),
    }, text);
  }

  beginPath() {
    this.#path = "";
  }

  moveTo(x, y) {
    this.#path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x, y) {
    this.#path += `L${short(x)} ${short(y)}`;
  }

  /** A whole circle: there are no others. */
  arc(x, y, radius) {
    const [r, twice] = [short(radius), short(2 * radius)];
    this.#path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${twice} 0a${r} ${r} 0 1 0 -${twice} 0`;
  }

  stroke() {
    this.#add("path", { d: this.#path, fill: "none", stroke: this.strokeStyle.trim(), "stroke-width": this.lineWidth });
  }

  fill() {
    this.#add("path", { d: this.#path, ...this.#fill() });
  }

  text(wide, tall, back) {
    const size = `width="${short(wide)}" height="${short(tall)}"`;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${short(wide)} ${short(tall)}" font-family="sans-serif" font-size="${FONT}">`;
    return `${head}<rect ${size} fill="${safe(back)}"/>${this.#parts.join("")}</svg>`;
  }
}
