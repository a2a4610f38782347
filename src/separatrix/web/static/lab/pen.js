// Two drawing backends with one interface: a canvas for the screen, SVG for export.

/**
 * @typedef {number[]} Pair x and y
 * @typedef {{ x: number, y: number, width: number, height: number }} Box
 * @typedef {{ fill?: string, stroke?: string, width?: number, dash?: number[], opacity?: number }} Style
 * @typedef {{ size?: number, fill: string, align?: "start" | "center" | "end", weight?: number, halo?: string | null }} TextStyle
 * @typedef {CanvasPen | SvgPen} Pen
 */

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "DejaVu Sans", sans-serif';

export class CanvasPen {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
  }

  /** @param {Box} box */
  clip({ x, y, width, height }) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
  }

  unclip() {
    this.context.restore();
  }

  /** @param {Style} style */
  _paint({ fill, stroke, width = 1, dash = [], opacity = 1 }) {
    const c = this.context;
    c.globalAlpha = opacity;
    if (fill) {
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.lineCap = dash.length ? "butt" : "round";
      c.lineJoin = dash.length ? "miter" : "round";
      c.setLineDash(dash);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {Style} style */
  rect(x, y, width, height, style) {
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this._paint(style);
  }

  /** @param {number} x @param {number} y @param {number} r @param {Style} style */
  circle(x, y, r, style) {
    this.context.beginPath();
    this.context.arc(x, y, r, 0, 2 * Math.PI);
    this._paint(style);
  }

  /** Several polylines as one path. @param {Pair[][]} lines @param {Style} style */
  path(lines, style, closed = false) {
    const c = this.context;
    c.beginPath();
    for (const line of lines) {
      line.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
      if (closed) c.closePath();
    }
    this._paint(style);
  }

  /** @param {string} text @param {number} x @param {number} y @param {TextStyle} style */
  text(text, x, y, { size = 12, fill, align = "start", weight = 400, halo = null }) {
    const c = this.context;
    c.font = `${weight} ${size}px ${FONT}`;
    c.textAlign = align;
    c.textBaseline = "alphabetic";
    c.setLineDash([]);
    if (halo) {
      c.lineJoin = "round";
      c.lineWidth = 4;
      c.strokeStyle = halo;
      c.strokeText(text, x, y);
    }
    c.fillStyle = fill;
    c.fillText(text, x, y);
  }
}

export class SvgPen {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    /** @type {string[]} */
    this.parts = [];
    this.clips = 0;
  }

  /** @param {Box} box */
  clip({ x, y, width, height }) {
    this.clips += 1;
    const id = `c${this.clips}`;
    const rect = `<rect x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}"/>`;
    this.parts.push(`<clipPath id="${id}">${rect}</clipPath><g clip-path="url(#${id})">`);
  }

  unclip() {
    this.parts.push("</g>");
  }

  /** @param {Style} style */
  _style({ fill, stroke, width = 1, dash = [], opacity = 1 }) {
    const line = stroke ? ` stroke="${stroke}" stroke-width="${width}" stroke-linejoin="round"` : "";
    const dashed = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    return ` fill="${fill ?? "none"}"${line}${dashed}${opacity < 1 ? ` opacity="${opacity}"` : ""}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {Style} style */
  rect(x, y, width, height, style) {
    this.parts.push(`<rect x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}"${this._style(style)}/>`);
  }

  /** @param {number} x @param {number} y @param {number} radius @param {Style} style */
  circle(x, y, radius, style) {
    this.parts.push(`<circle cx="${r(x)}" cy="${r(y)}" r="${r(radius)}"${this._style(style)}/>`);
  }

  /** @param {Pair[][]} lines @param {Style} style */
  path(lines, style, closed = false) {
    const d = lines.map((line) => "M" + line.map(([x, y]) => `${r(x)} ${r(y)}`).join("L") + (closed ? "Z" : "")).join("");
    if (d) this.parts.push(`<path d="${d}"${this._style(style)}/>`);
  }

  /** @param {string} text @param {number} x @param {number} y @param {TextStyle} style */
  text(text, x, y, { size = 12, fill, align = "start", weight = 400, halo = null }) {
    const anchor = { start: "start", center: "middle", end: "end" }[align];
    const around = halo ? ` stroke="${halo}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"` : "";
    const place = `x="${r(x)}" y="${r(y)}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}"`;
    this.parts.push(`<text ${place} fill="${fill}"${around}>${escaped(text)}</text>`);
  }

  toString() {
    const size = `width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}"`;
    const family = FONT.replaceAll('"', "'");
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${family}">${this.parts.join("")}</svg>`;
  }
}

/** @param {string} text */
export function escaped(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** @param {number} value */
function r(value) {
  return Number(value.toFixed(2));
}

/**
 * The outline of the marker of a class; each class has its own shape.
 * @param {number} shape
 * @param {number} x
 * @param {number} y
 * @param {number} size
 */
export function marker(shape, x, y, size) {
  if (shape === 0) return null; // a circle
  const at = (/** @type {number[]} */ angles, /** @type {number} */ radius) => angles.map((/** @type {number} */ a) => [x + radius * Math.sin(a), y - radius * Math.cos(a)]);
  const turn = (/** @type {number} */ n, offset = 0) => Array.from({ length: n }, (_, i) => offset + (2 * Math.PI * i) / n);
  if (shape === 1) return at(turn(4, Math.PI / 4), size * 1.25);
  if (shape === 2) return at(turn(3), size * 1.35);
  if (shape === 3) return at(turn(4), size * 1.35);
  if (shape === 4) return at(turn(3, Math.PI), size * 1.35);
  if (shape === 5) return at(turn(5), size * 1.25);
  return at(turn(10), 0).map((_, /** @type {number} */ i) => {
    const angle = (Math.PI * i) / 5;
    const radius = size * (i % 2 ? 0.6 : 1.35);
    return [x + radius * Math.sin(angle), y - radius * Math.cos(angle)];
  });
}

/** @param {Pen} pen @param {number[]} from @param {number[]} to @param {Style} style */
export function arrow(pen, from, to, style) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.hypot(dx, dy);
  if (length < 2) return;
  const head = Math.min(10, length * 0.6);
  const [ux, uy] = [dx / length, dy / length];
  const base = [to[0] - head * ux, to[1] - head * uy];
  pen.path([[from, base]], { ...style, fill: undefined });
  const wing = head * 0.45;
  pen.path([[to, [base[0] - wing * uy, base[1] + wing * ux], [base[0] + wing * uy, base[1] - wing * ux]]], {
    fill: style.stroke,
    opacity: style.opacity,
  }, true);
}
