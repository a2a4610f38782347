// Scores over the plane of the picture, as affine functions if possible, else on a grid; and their contours.

import { kernelValue } from "./engine/maps.js";

/** @import { Run } from "./run.js" */
/** @import { Frame } from "./frame.js" */

/**
 * Scores over the plane, one for each output: (a, b, c) of affine functions, or values on the grid.
 * `balance`, at a point of the grid, has the sign of the only score, and is nearly linear where the score falls exponentially.
 * @typedef {{ affine: number[][], values?: undefined } | { values: Float64Array[], affine?: undefined, stepped?: boolean, balance?: (g: number) => number }} Field
 */

const EVERY = 32; // running sums are saved after every so many mistakes, so that going back is fast

export class Fields {
  /** @param {Run} run @param {Frame} frame */
  constructor(run, frame) {
    this.run = run;
    this.frame = frame;
    const { plane, map } = run.doc;
    this.straight = map.kind === "none" && !run.dual;
    this.augmented = plane.kind === "augmented";
    this.nx = this.straight || (run.dual ? run.m <= 500 : run.width <= 12) ? 144 : 84;
    this.ny = Math.max(2, Math.round((this.nx * frame.height) / frame.width));
    this.size = this.nx * this.ny;
    /** @type {Record<string, { copies: Float64Array[], at: number, now: Float64Array }>} */
    this._sums = {};
    /** @type {number[][] | null} */
    this._lift = null;
    /** @type {Float64Array | null} */
    this._phi = null;
    /** @type {{ now: number[], late: number[] }[] | undefined} */
    this._biases = undefined;
  }

  /** The coordinates of grid point g in the plane. @param {number} g */
  place(g) {
    const [x0, x1, y0, y1] = this.frame.window;
    const u = (g % this.nx) / (this.nx - 1);
    const v = Math.floor(g / this.nx) / (this.ny - 1);
    return [x0 + u * (x1 - x0), y1 - v * (y1 - y0)];
  }

  /** (a, b, c) with score = a·p + b·q + c on the plane, for weights of one output. @param {ArrayLike<number>} w */
  affine(w) {
    if (this.augmented) return [w[0], w[1], 0];
    const { origin, across } = this.run.doc.plane;
    const part = (/** @type {number[]} */ direction) => direction.reduce((/** @type {number} */ sum, /** @type {number} */ value, /** @type {number} */ j) => sum + value * w[j], 0);
    return [part(across[0]), part(across[1]), part(origin) + (this.run.doc.bias ? w[this.run.D] : 0)];
  }

  /** The scores of some weights over the plane: affine functions, or values on the grid, one for each output. @param {ArrayLike<number>} flat */
  ofWeights(flat) {
    const { run } = this;
    const outputs = Array.from({ length: run.K }, (_, c) => Array.from(flat).slice(c * run.width, (c + 1) * run.width));
    if (this.straight) return { affine: outputs.map((w) => this.affine(w)) };
    const phi = this._phiGrid();
    return {
      values: outputs.map((w) => {
        const out = new Float64Array(this.size);
        for (let g = 0; g < this.size; g += 1) {
          let sum = 0;
          for (let j = 0; j < run.width; j += 1) sum += w[j] * phi[g * run.width + j];
          out[g] = sum;
        }
        return out;
      }),
    };
  }

  /** @param {number} k */
  last(k) {
    if (!this.run.dual) return this.ofWeights(this.run.path[k]);
    const sums = this._running("dual", k);
    const [scores, bias] = [this._parts(sums, 0), this._bias(k).now];
    if (this.run.K > 1) return { values: shifted(scores, bias) };
    // the logarithm of the ratio of the positive terms of the score to the negative ones
    const [[sizes], [score], [b]] = [this._parts(sums, 4), scores, bias];
    const balance = (/** @type {number} */ g) => Math.log(sizes[g] + score[g] + 2 * Math.max(b, 0)) - Math.log(sizes[g] - score[g] + 2 * Math.max(-b, 0));
    return { values: shifted(scores, bias), balance };
  }

  /** @param {number} t */
  averaged(t) {
    if (!this.run.dual) return this.ofWeights(this.run.averaged(t));
    const k = this.run.mistakesAt(t);
    const sums = this._running("dual", k);
    const [now, late] = [this._parts(sums, 0), this._parts(sums, 1)];
    const bias = this._bias(k);
    const mean = (/** @type {number} */ value, /** @type {number} */ later) => ((t + 1) * value - later) / Math.max(1, t);
    return { values: shifted(now.map((f, c) => f.map((value, g) => mean(value, late[c][g]))), bias.now.map((value, c) => mean(value, bias.late[c]))) };
  }

  /** @param {number} t */
  voted(t) {
    const { run } = this;
    const k = run.mistakesAt(t);
    const kind = run.dual ? "dual" : "votes";
    const sums = this._running(kind, k);
    const votes = this._parts(sums, kind === "dual" ? 2 : 0).map((part) => part.slice());
    const since = k === 0 ? t : t - run.mistakeSteps[k - 1] + 1;
    this._vote(votes, run.dual ? this._parts(sums, 3) : this.onGrid(this.last(k)), since);
    return { values: votes, stepped: true };
  }

  /** @param {Field} field */
  onGrid(field) {
    if (field.values) return field.values;
    const { nx, ny } = this;
    const [[p0, q0], [p1]] = [this.place(0), this.place(1)];
    const across = p1 - p0;
    const up = ny > 1 ? this.place(nx)[1] - q0 : 0;
    return field.affine.map(([a, b, c]) => {
      const out = new Float64Array(this.size);
      for (let row = 0; row < ny; row += 1) {
        const level = a * p0 + b * (q0 + row * up) + c;
        for (let column = 0; column < nx; column += 1) out[row * nx + column] = level + column * a * across;
      }
      return out;
    });
  }

  _phiGrid() {
    if (!this._phi) {
      const { run } = this;
      this._phi = new Float64Array(this.size * run.width);
      for (let g = 0; g < this.size; g += 1) this._phi.set(run.phi(this.frame.lift(this.place(g))), g * run.width);
    }
    return this._phi;
  }

  /** @param {Float64Array} sums @param {number} which */
  _parts(sums, which) {
    const K = this.run.K;
    return Array.from({ length: K }, (_, c) => sums.subarray((which * K + c) * this.size, (which * K + c + 1) * this.size));
  }

  /**
   * Sums over the first k mistakes. "votes": the votes of all earlier weights. "dual": the scores without the bias, the same times
   * the step of each mistake, the votes, the scores as Python adds them, whose signs are the votes, and the sizes of the terms.
   * @param {string} kind
   * @param {number} k
   */
  _running(kind, k) {
    const length = this.size * this.run.K * (kind === "dual" ? 5 : 1);
    const sums = (this._sums[kind] ??= { copies: [new Float64Array(length)], at: 0, now: new Float64Array(length) });
    if (sums.at > k) {
      sums.at = Math.floor(k / EVERY) * EVERY;
      sums.now.set(sums.copies[sums.at / EVERY]);
    }
    while (sums.at < k) {
      this._add(kind, sums.now, sums.at);
      sums.at += 1;
      if (sums.at % EVERY === 0 && !sums.copies[sums.at / EVERY]) sums.copies[sums.at / EVERY] = sums.now.slice();
    }
    return sums.now;
  }

  /** @param {string} kind @param {Float64Array} sums @param {number} m */
  _add(kind, sums, m) {
    const { run } = this;
    const lasted = run.mistakeSteps[m] - (m === 0 ? 1 : run.mistakeSteps[m - 1]);
    if (kind === "votes") {
      this._vote(this._parts(sums, 0), this.onGrid(this.last(m)), lasted);
      return;
    }
    const [now, late, votes, whole, sizes] = [0, 1, 2, 3, 4].map((which) => this._parts(sums, which));
    this._vote(votes, whole, lasted);
    const x = run.doc.x[run.mistakenExample(m)];
    const step = run.mistakeSteps[m];
    const gains = new Array(run.K).fill(0);
    run.credit(m, 1, gains);
    const kernel = /** @type {import("./engine/types.js").Kernel} */ (run.doc.kernel);
    const bias = run.doc.bias ? 1 : 0;
    for (let g = 0; g < this.size; g += 1) {
      const value = kernelValue(kernel, x, this._lifted(g));
      for (let c = 0; c < run.K; c += 1) {
        if (gains[c] === 0) continue;
        now[c][g] += gains[c] * value;
        late[c][g] += step * gains[c] * value;
        whole[c][g] += gains[c] * (value + bias);
        sizes[c][g] += Math.abs(gains[c] * value);
      }
    }
  }

  /**
   * The bias of a run with a kernel after k mistakes, and its sum times the steps. It is added last, so that far from all examples
   * the kernel's small values are not lost in it.
   * @param {number} k
   */
  _bias(k) {
    const { run } = this;
    const zero = () => new Array(run.K).fill(0);
    this._biases ??= [{ now: zero(), late: zero() }];
    for (let m = this._biases.length - 1; m < k; m += 1) {
      const gains = zero();
      if (run.doc.bias) run.credit(m, 1, gains);
      const { now, late } = this._biases[m];
      this._biases.push({ now: now.map((value, c) => value + gains[c]), late: late.map((value, c) => value + run.mistakeSteps[m] * gains[c]) });
    }
    return this._biases[k];
  }

  /** @param {number} g */
  _lifted(g) {
    this._lift ??= Array.from({ length: this.size }, (_, h) => this.frame.lift(this.place(h)));
    return this._lift[g];
  }

  /** @param {Float64Array[]} votes @param {Float64Array[]} scores @param {number} times */
  _vote(votes, scores, times) {
    if (times === 0) return;
    if (votes.length === 1) {
      for (let g = 0; g < this.size; g += 1) votes[0][g] += times * Math.sign(scores[0][g]);
      return;
    }
    for (let g = 0; g < this.size; g += 1) {
      const { winner, lead } = winnerAt(scores, g);
      if (lead > 0) votes[winner][g] += times;
    }
  }

  /** The predicted class at each point of the grid: 1 or 0 for two classes, −1 for a tie. @param {Field} field */
  winners(field) {
    const values = this.onGrid(field);
    const out = new Int8Array(this.size);
    for (let g = 0; g < this.size; g += 1) {
      if (values.length === 1) out[g] = values[0][g] > 0 ? 1 : values[0][g] < 0 ? 0 : -1;
      else {
        const { winner, lead } = winnerAt(values, g);
        out[g] = lead > 0 ? winner : -1;
      }
    }
    return out;
  }

  /** The boundary as lines in the plane, or the contour of another level of a single score. @param {Field} field */
  boundary(field, level = 0) {
    if (field.affine && field.affine.length === 1) {
      const line = this.frame.cut(field.affine[0], level);
      return line ? [line] : [];
    }
    if (field.affine) return this._borders(field.affine);
    const values = this.onGrid(field);
    if (values.length === 1) return this._contours(values[0], level, undefined, level === 0 ? field.balance : undefined);
    const lines = [];
    for (let c = 0; c < values.length; c += 1) {
      const lead = new Float64Array(this.size);
      const rival = new Int8Array(this.size);
      for (let g = 0; g < this.size; g += 1) {
        let best = c === 0 ? 1 : 0;
        for (let o = 0; o < values.length; o += 1) if (o !== c && values[o][g] > values[best][g]) best = o;
        lead[g] = values[c][g] - values[best][g];
        rival[g] = best;
      }
      lines.push(...this._contours(lead, level, (g) => rival[g] > c)); // each border once
    }
    return lines;
  }

  /**
   * The borders between classes with affine scores: for each pair, the part of its line where no third class scores higher.
   * @param {number[][]} affine
   */
  _borders(affine) {
    const lines = [];
    const less = (/** @type {number[]} */ f, /** @type {number[]} */ g) => f.map((/** @type {number} */ value, /** @type {number} */ j) => value - g[j]);
    for (let c = 0; c < affine.length; c += 1) {
      for (let o = c + 1; o < affine.length; o += 1) {
        const line = this.frame.cut(less(affine[c], affine[o]));
        if (!line) continue;
        const [from, to] = line;
        let [low, high] = [0, 1];
        affine.forEach((other, j) => {
          if (j === c || j === o) return;
          const [a, b, rest] = less(affine[c], other);
          const [first, last] = [from, to].map(([p, q]) => a * p + b * q + rest);
          const zero = first / (first - last);
          if (first < 0 && last < 0) high = -1;
          else if (first < 0) low = Math.max(low, zero);
          else if (last < 0) high = Math.min(high, zero);
        });
        const at = (/** @type {number} */ share) => from.map((/** @type {number} */ value, /** @type {number} */ j) => value + share * (to[j] - value));
        if (low < high) lines.push([at(low), at(high)]);
      }
    }
    return lines;
  }

  /**
   * Marching squares. A crossing is identified by the edge of the grid that it lies on, so that pieces can be joined.
   * @param {Float64Array} values
   * @param {number} level
   * @param {(g: number) => boolean} wanted
   * @param {(g: number) => number} balance whose zero is where the values reach the level
   */
  _contours(values, level, wanted = (g) => g >= 0, balance = (g) => values[g] - level) {
    const { nx, ny } = this;
    const points = new Map();
    const neighbours = new Map();
    const crossing = (/** @type {number} */ g, /** @type {number} */ h, /** @type {number} */ edge) => {
      if (!points.has(edge)) {
        const [before, after] = [balance(g), balance(h)];
        const exact = before / (before - after);
        const share = exact >= 0 && exact <= 1 ? exact : (level - values[g]) / (values[h] - values[g]);
        const [from, to] = [this.place(g), this.place(h)];
        points.set(edge, [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
        neighbours.set(edge, []);
      }
      return edge;
    };
    const above = (/** @type {number} */ g) => values[g] > level;
    for (let row = 0; row + 1 < ny; row += 1) {
      for (let column = 0; column + 1 < nx; column += 1) {
        const a = row * nx + column;
        if (!wanted(a)) continue;
        const corners = [a, a + 1, a + nx + 1, a + nx];
        const edges = [];
        for (let side = 0; side < 4; side += 1) {
          const [g, h] = [corners[side], corners[(side + 1) % 4]];
          if (above(g) === above(h)) continue;
          const low = Math.min(g, h);
          edges.push(crossing(low, Math.max(g, h), 2 * low + (side % 2)));
        }
        for (let e = 0; e + 1 < edges.length; e += 2) {
          neighbours.get(edges[e]).push(edges[e + 1]);
          neighbours.get(edges[e + 1]).push(edges[e]);
        }
      }
    }
    return joined(points, neighbours);
  }
}

/** @param {Float64Array[]} values @param {number[]} by what is added to the values of each output */
function shifted(values, by) {
  return by.every((value) => value === 0) ? values : values.map((part, c) => part.map((value) => value + by[c]));
}

/** @param {Float64Array[]} values @param {number} g */
function winnerAt(values, g) {
  let winner = 0;
  let second = -Infinity;
  for (let c = 1; c < values.length; c += 1) {
    if (values[c][g] > values[winner][g]) {
      second = Math.max(second, values[winner][g]);
      winner = c;
    } else second = Math.max(second, values[c][g]);
  }
  return { winner, lead: values[winner][g] - second };
}

/** @param {Map<number, number[]>} points @param {Map<number, number[]>} neighbours */
function joined(points, neighbours) {
  const lines = [];
  const used = new Set();
  const follow = (/** @type {number} */ start) => {
    const line = /** @type {number[][]} */ ([]);
    let edge = /** @type {number | undefined} */ (start);
    while (edge !== undefined) {
      used.add(edge);
      const point = points.get(edge);
      if (point) line.push(point);
      edge = neighbours.get(edge)?.find((other) => !used.has(other));
    }
    return line;
  };
  for (const [edge, others] of neighbours) if (others.length === 1 && !used.has(edge)) lines.push(follow(edge));
  for (const [edge, others] of neighbours) {
    if (used.has(edge)) continue;
    const line = follow(edge);
    if (others.length > 1) line.push(line[0]);
    lines.push(line);
  }
  return lines.filter((line) => line.length > 1);
}
