"use strict";
(() => {
const page = document.documentElement;
const $ = (id) => document.getElementById(id);
const payload = JSON.parse($("numbers").textContent);

// ---- numbers -------------------------------------------------------------------------------
const unpack = (text, Kind) => {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  const view = new DataView(bytes.buffer), size = Kind.BYTES_PER_ELEMENT;
  const values = new Float64Array(bytes.length / size);
  for (let k = 0; k < values.length; k++)
    values[k] = size === 8 ? view.getFloat64(8 * k, true) : view.getFloat32(4 * k, true);
  return values;
};

// As Python writes them: so many digits, no needless zeros, a true minus, powers of ten; what is
// rounding beside numbers of a size is zero.
const short = (value, digits = 4, size = 0) => {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0 || (Number.isFinite(size) && Math.abs(value) < payload.rounding * size)) return "0";
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  let text;
  if (power < -4 || power >= digits) {
    const sup = String(power).replace(/[-\d]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
    text = mantissa.replace(/\.?0+$/, "") + " × 10" + sup;
    if (!mantissa.includes(".")) text = mantissa + " × 10" + sup;
  } else {
    text = value.toFixed(Math.max(0, digits - 1 - power));
    if (text.includes(".")) text = text.replace(/\.?0+$/, "");
  }
  return text.replace("-", "−");
};
// Enough digits to see the interval.
const digitsFor = (low, high) => {
  const size = Math.max(Math.abs(low), Math.abs(high)), width = high - low;
  if (!(width > 0) || !Number.isFinite(size)) return 4;
  return Math.min(10, Math.max(4, Math.ceil(Math.log10(size / width)) + 3));
};

// ---- a law as a table of integers ----------------------------------------------------------
const OPERATORS = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
  "pow": Math.pow, "^": Math.pow, "sqrt": Math.sqrt, "exp": Math.exp, "log": Math.log,
  "sin": Math.sin, "cos": Math.cos, "tan": Math.tan, "tanh": Math.tanh, "abs": Math.abs,
};
// Values for n vectors of parameters (theta[k][i]) at one point.
const evaluate = (law, theta, n, point) => {
  const values = [];
  for (const [kind, a, b] of law.nodes) {
    if (kind === "x") { values.push(point[law.columns[a]]); continue; }
    if (kind === "c") { values.push(theta[a]); continue; }
    if (kind === "l") { values.push(law.literals[a]); continue; }
    const apply = OPERATORS[kind], left = values[a];
    const right = kind === "^" ? b : values[b];
    const isUnary = apply.length === 1 && kind !== "pow" && kind !== "^";
    if (typeof left === "number" && (isUnary || typeof right === "number")) {
      values.push(apply(left, right));
      continue;
    }
    const out = new Float64Array(n), l = typeof left === "number", r = typeof right === "number";
    for (let i = 0; i < n; i++) out[i] = apply(l ? left : left[i], r || isUnary ? right : right[i]);
    values.push(out);
  }
  const last = values[values.length - 1];
  return typeof last === "number" ? new Float64Array(n).fill(last) : last;
};
// A law has a part for each group, with constants of its own; without groups it has one.
const best = (law, point, group = state.group) => evaluate(law, law.parts[group].theta, 1, point)[0];

const drawsOf = (law, group = state.group) => {
  const part = law.parts[group];
  if (part.drawn !== undefined) return part.drawn;
  part.drawn = null;
  if (part.n) {
    const n = part.n, white = unpack(part.white, Float32Array), p = part.theta.length, theta = [];
    for (let k = 0; k < p; k++) {
      const row = new Float64Array(n).fill(part.centre[k]);
      for (let j = 0; j <= k; j++)
        for (let i = 0; i < n; i++) row[i] += part.factor[k][j] * white[j * n + i];
      theta.push(row);
    }
    part.drawn = { n, of: part.of, theta, sigma: unpack(part.sigma, Float32Array) };
  }
  return part.drawn;
};
// Every so many draws: for bands, which are looked at.
const thin = (draws, n) => {
  if (draws.n <= n) return draws;
  const pick = (row) => Float64Array.from({ length: n }, (_, i) =>
    row[Math.floor(i * (draws.n - 1) / (n - 1))]);
  return { n, theta: draws.theta.map(pick), sigma: pick(draws.sigma) };
};

// ---- distributions -------------------------------------------------------------------------
// Hart's rational function, to fifteen digits.
const normalCdf = (x) => {
  const z = Math.abs(x);
  if (z > 37) return x > 0 ? 1 : 0;
  const density = Math.exp(-0.5 * z * z);
  let tail;
  if (z < 7.07106781186547) {
    const up = ((((((3.52624965998911e-2 * z + 0.700383064443688) * z + 6.37396220353165) * z
      + 33.912866078383) * z + 112.079291497871) * z + 221.213596169931) * z + 220.206867912376);
    const down = (((((((8.83883476483184e-2 * z + 1.75566716318264) * z + 16.064177579207) * z
      + 86.7807322029461) * z + 296.564248779674) * z + 637.333633378831) * z
      + 793.826512519948) * z + 440.413735824752);
    tail = density * up / down;
  } else {
    tail = density / (z + 1 / (z + 2 / (z + 3 / (z + 4 / (z + 0.65))))) / 2.506628274631;
  }
  return x > 0 ? 1 - tail : tail;
};
const normalPdf = (x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
const studentCdf = (z) => {
  const share = z / Math.sqrt(4 + z * z);
  return 0.5 + 0.75 * share * (1 - share * share / 3);
};
const studentPdf = (z) => 0.375 * Math.pow(1 + z * z / 4, -2.5);
const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
  1.5056327351493116e-7];
const logGamma = (x) => {
  let sum = LANCZOS[0];
  for (let k = 1; k < 9; k++) sum += LANCZOS[k] / (x - 1 + k);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
};
// The same of the incomplete gamma function, for large a: Temme's uniform expansion (DLMF 8.12.4).
const largeGammaTail = (a, m) => {
  const mu = m / a - 1;
  let half = mu - Math.log1p(mu);
  if (Math.abs(mu) < 0.1) {
    half = 0;
    for (let n = 20; n >= 2; n--) half += Math.pow(-mu, n) / n;
  }
  const eta = Math.sign(mu) * Math.sqrt(2 * half);
  const first = Math.abs(mu) < 1e-5 ? eta / 12 - 1 / 3 : 1 / mu - 1 / eta;
  return normalCdf(-eta * Math.sqrt(a)) + Math.exp(-a * half) / Math.sqrt(2 * Math.PI * a) * first;
};
// Probability of at most k events where m are expected.
const poissonCdf = (k, m) => {
  if (k < 0) return 0;
  if (m <= 0) return 1;
  const a = k + 1;
  if (a > 1e4) return largeGammaTail(a, m);
  const front = Math.exp(a * Math.log(m) - m - logGamma(a));
  if (m < a + 1) {
    let term = 1 / a, sum = term;
    for (let j = 1; j < 10000 && term > 1e-16 * sum; j++) { term *= m / (a + j); sum += term; }
    return 1 - front * sum;
  }
  let b = m + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (let j = 1; j < 10000; j++) {
    const an = -j * (j - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return front * h;
};

// The quantile of a mixture: as pmsr computes it, Newton's method within a bracket.
const mixtureQuantile = (p, end, mu, width) => {
  const isStudent = payload.noise === "student", n = mu.length;
  const cdf = isStudent ? studentCdf : normalCdf, pdf = isStudent ? studentPdf : normalPdf;
  let low = Infinity, high = -Infinity, sum = 0, least = Infinity;
  for (let i = 0; i < n; i++) {
    const own = mu[i] + width[i] * end;
    if (own < low) low = own;
    if (own > high) high = own;
    if (width[i] < least) least = width[i];
    sum += own;
  }
  let value = Math.min(high, Math.max(low, sum / n));
  for (let k = 0; k < 200; k++) {
    let below = 0, density = 0;
    for (let i = 0; i < n; i++) {
      const z = (value - mu[i]) / width[i];
      below += cdf(z);
      density += pdf(z) / width[i];
    }
    const missing = p - below / n;
    if (missing >= 0) low = value; else high = value;
    let next = value + missing / (density / n);
    if (!(next >= low && next <= high)) next = 0.5 * (low + high);
    const step = Math.abs(next - value);
    value = next;
    if (step <= 1e-10 * least + 1e-15 * Math.abs(value)) break;
  }
  return value;
};
const poissonQuantile = (p, mu) => {
  let top = 0;
  for (const m of mu) if (m > top) top = m;
  let low = -1, high = Math.ceil(top + 12 * Math.sqrt(top + 1) + 12);
  while (high - low > 1) {
    const middle = Math.floor(0.5 * (low + high));
    let sum = 0;
    for (const m of mu) sum += poissonCdf(middle, Math.max(m, 0));
    if (sum / mu.length >= p) high = middle; else low = middle;
  }
  return high;
};
const quantile = (sorted, p) => {
  const place = p * (sorted.length - 1), k = Math.floor(place), part = place - k;
  return part === 0 ? sorted[k] : sorted[k] + part * (sorted[k + 1] - sorted[k]);
};
// Mean, credible and prediction interval at a point: what `pmsr predict` says.
const predict = (law, point, draws, bands = true) => {
  const all = evaluate(law, draws.theta, draws.n, point);
  const mu = [], sigma = [];
  for (let i = 0; i < draws.n; i++)
    if (Number.isFinite(all[i])) { mu.push(all[i]); sigma.push(draws.sigma[i]); }
  const nothing = { mean: NaN, low: NaN, high: NaN, newLow: NaN, newHigh: NaN };
  if (2 * mu.length < draws.n || !mu.length) return nothing;
  let mean = 0;
  for (const m of mu) mean += m;
  mean /= mu.length;
  const sorted = Float64Array.from(mu).sort(), [a, b] = payload.tails, [za, zb] = payload.ends;
  const found = { mean, low: quantile(sorted, a), high: quantile(sorted, b) };
  if (payload.noise === "poisson") {
    found.newLow = poissonQuantile(a, mu);
    found.newHigh = poissonQuantile(b, mu);
  } else if (payload.noise === "lognormal") {
    const logs = mu.map(Math.log);
    found.newLow = Math.exp(mixtureQuantile(a, za, logs, sigma));
    found.newHigh = Math.exp(mixtureQuantile(b, zb, logs, sigma));
  } else {
    const width = payload.noise === "proportional" ? sigma.map((s, i) => s * Math.abs(mu[i])) : sigma;
    found.newLow = mixtureQuantile(a, za, mu, width);
    found.newHigh = mixtureQuantile(b, zb, mu, width);
  }
  return found;
};

// ---- drawing -------------------------------------------------------------------------------
const SVG = "http://www.w3.org/2000/svg";
const make = (tag, attributes = {}, text = null, parent = null) => {
  const isDrawn = ["svg", "path", "circle", "line", "rect", "text", "g", "title"].includes(tag);
  const element = isDrawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
};
const ticksOf = (low, high, n) => {
  // A third more are better than half as many.
  const raw = 0.75 * (high - low) / Math.max(1, n), power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks.map((t) => (Math.abs(t) < 1e-9 * step ? 0 : t));
};
const tickText = (value, ticks) => {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : Math.abs(value) || 1;
  const size = Math.max(...ticks.map(Math.abs)) || 1;
  if (size < 1e6 && step > 1e-5)
    return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace("-", "−");
  return short(value, Math.min(12, Math.max(1, Math.ceil(Math.log10(size / step) + 1e-9) + 1)));
};
// On a logarithmic axis: powers of ten, and what lies between them if they are few.
const logTicksOf = (low, high, n) => {
  const [from, to] = [Math.log10(low), Math.log10(high)], ticks = [];
  const step = Math.max(1, Math.round((to - from) / Math.max(3, n))), parts = to - from < 2 ? [1, 2, 5] : [1];
  for (let k = Math.floor(from / step) * step; k <= to; k += step)
    for (const part of parts) if (part * 10 ** k >= low * (1 - 1e-9) && part * 10 ** k <= high * (1 + 1e-9)) ticks.push(part * 10 ** k);
  return ticks.length > 1 ? ticks : ticksOf(low, high, n);
};
// Axes in a box, with functions that place numbers; letters keep their size on any screen.
const frame = (box, { x, y, xName, yName, label, isCount = false, xLog = false, yLog = false }) => {
  box.textContent = "";
  const width = Math.max(260, Math.min(box.clientWidth || 560, 720));
  const height = Math.round(Math.max(230, Math.min(380, 0.62 * width)));
  const yTicks = (yLog ? logTicksOf : ticksOf)(y[0], y[1], 5);
  const write = (t, ticks, isLog) => (isLog ? short(t, 4).replace(/^1 × /, "") : tickText(t, ticks));
  const longest = Math.max(...yTicks.map((t) => write(t, yTicks, yLog).length));
  const left = 34 + 7 * longest, top = 12, bottom = 44, wide = width - left - 14;
  const spread = (room, share = 1) => (xLog ? logTicksOf : ticksOf)(x[0], x[1], Math.max(2, Math.floor(share * room / 90)));
  let xTicks = spread(wide);
  const own = (ticks) => Math.max(...ticks.map((t) => 7 * write(t, ticks, xLog).length));
  if (own(xTicks) + 12 > wide / xTicks.length) xTicks = spread(wide, 0.5);
  // The last number is as long as it is, and stands in the middle of its tick.
  const across = (v, [low, high], isLog) => (isLog ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low || 1));
  const last = (1 - across(xTicks[xTicks.length - 1], x, xLog)) * wide;
  const right = Math.max(14, Math.ceil(14 + 0.5 * own(xTicks) - last - 10));
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": label, class: "chart" }, null, box);
  const px = (v) => left + (width - left - right) * across(v, x, xLog);
  // Nothing that is not positive has a place on a logarithmic axis: it lies below the picture.
  const py = (v) => (yLog && v <= 0 ? 2 * height
    : Math.max(-height, Math.min(2 * height, height - bottom - (height - top - bottom) * across(v, y, yLog))));
  const room = width - left - right;
  if (xTicks.length < 2 && !xLog) xTicks = ticksOf(x[0], x[1], 4);
  if (isCount && xTicks[1] - xTicks[0] < 1) xTicks = ticksOf(x[0], x[1], x[1] - x[0]);
  for (const t of xTicks) {
    make("line", { x1: px(t), x2: px(t), y1: height - bottom, y2: height - bottom + 5, class: "axis" }, null, svg);
    make("text", { x: px(t), y: height - bottom + 18, "text-anchor": "middle" }, write(t, xTicks, xLog), svg);
  }
  for (const t of yTicks) {
    make("line", { x1: left, x2: width - right, y1: py(t), y2: py(t), class: "grid" }, null, svg);
    make("text", { x: left - 7, y: py(t) + 4, "text-anchor": "end" }, write(t, yTicks, yLog), svg);
  }
  make("path", { d: `M${left},${top}V${height - bottom}H${width - right}`, class: "axis" }, null, svg);
  const cut = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);
  make("text", { x: left + room / 2, y: height - 6, "text-anchor": "middle" }, cut(xName, Math.floor(room / 7)), svg);
  const tall = height - top - bottom, middle = top + tall / 2;
  make("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` },
    cut(yName, Math.floor(tall / 7)), svg);
  const inside = make("svg", { x: left, y: top, width: room, height: tall,
    viewBox: `${left} ${top} ${room} ${tall}` }, null, svg);
  return { svg, inside, px, py, x, y, left, right, top, bottom, width, height };
};
const trace = (axes, xs, ys) => {
  let path = "", pen = false, last = 0;
  const [low, high] = axes.y;
  xs.forEach((v, i) => {
    const w = ys[i], side = w > high ? 1 : w < low ? -1 : 0;
    // Across a pole there is no line.
    if (!Number.isFinite(w) || side * last === -1) pen = false;
    if (Number.isFinite(w)) {
      path += `${pen ? "L" : "M"}${axes.px(v).toFixed(2)},${axes.py(w).toFixed(2)}`;
      pen = true;
      last = side;
    }
  });
  return path;
};
const band = (axes, xs, lows, highs, name, more = {}) => {
  const clip = (w) => axes.py(w).toFixed(2);
  let run = [];
  const flush = () => {
    if (run.length > 1) {
      const up = run.map((i) => `${axes.px(xs[i]).toFixed(2)},${clip(highs[i])}`);
      const down = run.reverse().map((i) => `${axes.px(xs[i]).toFixed(2)},${clip(lows[i])}`);
      make("path", { d: `M${up.concat(down).join("L")}Z`, class: name, ...more }, null, axes.inside);
    }
    run = [];
  };
  xs.forEach((_, i) => { if (Number.isFinite(lows[i]) && Number.isFinite(highs[i])) run.push(i); else flush(); });
  flush();
};
const dots = (axes, xs, ys, errors = null, across = null, whose = rows) => {
  // Many would hide the lines: they lie beneath, and are small.
  const isCrowd = xs.length > 200, under = make("g"), own = `${isCrowd ? " crowd" : ""}${groups.length ? " own" : ""}`;
  if (isCrowd) axes.inside.insertBefore(under, axes.inside.querySelector(".curve"));
  xs.forEach((v, i) => {
    if (!Number.isFinite(v) || !(ys[i] >= axes.y[0] && ys[i] <= axes.y[1])) return;
    const color = groups.length ? { style: `--own: var(--g${groupOf(whose[i]) % 6})` } : {};
    if (across) {
      const left = axes.px(v - across[i]), right = axes.px(v + across[i]), at = axes.py(ys[i]);
      make("path", { d: `M${left},${at}H${right}M${left},${at - 3}v6M${right},${at - 3}v6`, class: "error" + own, ...color }, null, axes.inside);
    }
    if (errors) {
      const up = axes.py(ys[i] + errors[i]), down = axes.py(ys[i] - errors[i]), at = axes.px(v);
      make("path", { d: `M${at},${up}V${down}M${at - 3},${up}h6M${at - 3},${down}h6`, class: "error" + own, ...color }, null, axes.inside);
    }
    make("circle", { cx: axes.px(v), cy: axes.py(ys[i]), r: isCrowd ? 2 : 3.6, class: "dot" + own, ...color },
      null, isCrowd ? under : axes.svg);
  });
};
const rangeOf = (values, share = 0.05, isLog = false) => {
  if (isLog) return rangeOf(values.map(Math.log), share).map(Math.exp);
  let low = Infinity, high = -Infinity;
  for (const v of values) if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
  if (!(high > low)) { const room = Math.abs(low) * 0.1 || 1; return [low - room, low + room]; }
  return [low - share * (high - low), high + share * (high - low)];
};
// Without what a pole carries off: not the few that lie five times as far out as the middle is wide.
const middleOf = (values) => {
  const sorted = Float64Array.from([...values].filter(Number.isFinite)).sort();
  if (sorted.length < 8) return values;
  const [low, high] = [quantile(sorted, 0.25), quantile(sorted, 0.75)], room = 5 * (high - low);
  return values.filter((v) => v >= low - room && v <= high + room);
};
const legend = (box, entries) => {
  const list = make("div", { class: "key" }, null, box);
  for (const [kind, text, more = {}] of entries) {
    const item = make("span", { class: `of-${kind.split(" ")[0]}` }, null, list);
    const sign = make("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" }, null, item);
    if (kind.startsWith("dot")) make("circle", { cx: 13, cy: 6, r: 3.6, class: kind, ...more }, null, sign);
    else if (kind === "line") make("path", { d: "M1,6H25", class: "curve" }, null, sign);
    else if (kind === "here") make("path", { d: "M13,0V12", class: "here" }, null, sign);
    else make("rect", { x: 1, y: 1, width: 24, height: 10, class: kind }, null, sign);
    item.append(" " + text);
  }
};

// ---- what is shown -------------------------------------------------------------------------
const columns = payload.columns, target = payload.target, level = payload.levelText;
const nColumns = columns.length, nRows = payload.n;
const flat = unpack(payload.X, Float64Array), y = unpack(payload.y, Float64Array);
const X = columns.map((_, k) => flat.subarray(k * nRows, (k + 1) * nRows));
const yError = payload.yError ? unpack(payload.yError, Float32Array) : null;
const xError = payload.xError ? unpack(payload.xError, Float32Array) : null;
const rows = [...Array(nRows).keys()];
const thinned = payload.of > nRows ? `, ${nRows} of ${payload.of} rows` : "";
const groups = payload.groups, groupOf = (i) => (payload.group ? payload.group[i] : 0);
const pointOf = (i) => X.map((column) => column[i]);
const state = { law: payload.winner, point: columns.map((c) => c.middle), along: null, group: 0 };
const usedBy = (law) => columns.map((_, k) => k).filter((k) => !columns[k].isKnown &&
  law.nodes.some(([kind, a]) => kind === "x" && law.columns[a] === k));
const named = (k) => columns[k].label;
const lawOf = (key) => payload.laws[key];

// A quarter beyond the data on either side, but not to where a variable never was: below zero.
const beyond = ({ low, high, isLog }) => {
  if (isLog) { const ratio = (high / low) ** 0.25; return [low / ratio, high * ratio]; }
  const room = 0.25 * (high - low);
  return [low >= 0 ? Math.max(low - room, 0) : low - room, high <= 0 ? Math.min(high + room, 0) : high + room];
};
// Values along a variable, beyond the data as far as there is something to see.
const gridOf = (law, k) => {
  const { low, high } = columns[k], n = 161;
  let [start, end] = beyond(columns[k]);
  const [bottom, top] = rangeOf(y, 1);
  const at = (v) => best(law, state.point.map((p, j) => (j === k ? v : p)));
  const isSeen = (v) => { const w = at(v); return w >= bottom && w <= top; };
  const along = (i) => (columns[k].isLog ? start * (end / start) ** (i / (n - 1)) : start + (end - start) * i / (n - 1));
  const values = [...Array(n).keys()].map(along);
  if (usedBy(law).length === 1) {
    const before = values.findLastIndex((v) => v < low && !isSeen(v));
    const behind = values.findIndex((v) => v > high && !isSeen(v));
    if (before >= 0) start = Math.min(low, values[before + 1]);
    if (behind >= 0) end = Math.max(high, values[behind - 1]);
  }
  return values.map((_, i) => along(i));
};

const drawFit = (law) => {
  const box = $("live-fit"), measured = columns.map((_, k) => k).filter((k) => !columns[k].isKnown);
  // What depends on nothing is drawn along what it could depend on.
  const used = measured.length === 1 ? measured : usedBy(law);
  if (!used.length) return drawParity(law, box);
  const k = used.includes(state.along) ? state.along : used[0];
  const xs = gridOf(law, k), draws = drawsOf(law);
  const few = draws && thin(draws, payload.noise === "poisson" ? 250 : 1000);
  const points = xs.map((v) => state.point.map((p, j) => (j === k ? v : p)));
  const curves = (groups.length ? groups : [""]).map((_, g) => points.map((p) => best(law, p, g)));
  const curve = curves.flat();
  const found = few ? points.map((p) => predict(law, p, few)) : [];
  // Where other variables differ, a measurement is drawn as far from the curve as its residual.
  const alone = used.length === 1;
  const seen = alone ? y : rows.map((i) => y[i] - best(law, pointOf(i), groupOf(i))
    + best(law, state.point.map((p, j) => (j === k ? X[k][i] : p)), groupOf(i)));
  const core = alone ? seen : middleOf(seen);
  const { low, high } = columns[k];
  const within = found.filter((_, i) => xs[i] >= low && xs[i] <= high);
  const yLog = alone && target.isLog && !(Math.min(...(few ? within.map((f) => f.newLow)
    : curve.filter((_, i) => xs[i % xs.length] >= low && xs[i % xs.length] <= high))) <= 0);
  const ends = rangeOf(core, 0), width = 0.5 * (ends[1] - ends[0]), share = Math.sqrt(ends[1] / ends[0]);
  const errors = yError && alone ? [...rows.map((i) => y[i] - yError[i]), ...rows.map((i) => y[i] + yError[i])] : [];
  const inRange = (ws) => ws.filter((w) => (yLog ? w > ends[0] / share && w < ends[1] * share
    : w > ends[0] - width && w < ends[1] + width));
  const range = rangeOf([...core, ...inRange(errors), ...inRange(curve),
    ...inRange(within.map((f) => f.newLow)), ...inRange(within.map((f) => f.newHigh))], 0.05, yLog);
  const axes = frame(box, { x: [xs[0], xs[xs.length - 1]], y: range, xLog: columns[k].isLog, yLog, xName: named(k), yName: target.label,
    label: `${target.name} against ${columns[k].name}: data, best fit and intervals of the law chosen` });
  for (const [a, b] of [[xs[0], low], [high, xs[xs.length - 1]]])
    if (b > a) make("rect", { x: axes.px(a), y: axes.top, width: axes.px(b) - axes.px(a),
      height: axes.height - axes.top - axes.bottom, class: "beyond" }, null, axes.inside);
  const color = (g) => ({ style: `--own: var(--g${g % 6})` });
  if (groups.length) {
    curves.forEach((values, g) => {
      const draws = drawsOf(law, g), some = draws && thin(draws, payload.noise === "poisson" ? 100 : 400);
      const own = some ? (g === state.group ? found : points.map((p) => predict(law, p, some))) : [];
      if (some) band(axes, xs, own.map((f) => f.newLow), own.map((f) => f.newHigh), "wide own", color(g));
      make("path", { d: trace(axes, xs, values), class: `curve own${g === state.group ? "" : " faint"}`, ...color(g) }, null, axes.inside);
    });
  } else {
    if (few) {
      band(axes, xs, found.map((f) => f.newLow), found.map((f) => f.newHigh), "wide");
      band(axes, xs, found.map((f) => f.low), found.map((f) => f.high), "narrow");
    }
    make("path", { d: trace(axes, xs, curve), class: "curve" }, null, axes.inside);
  }
  dots(axes, [...X[k]], [...seen], alone ? yError : null,
    alone && xError ? xError.subarray(k * nRows, (k + 1) * nRows) : null);
  const here = axes.px(state.point[k]);
  if (here >= axes.left && here <= axes.width - axes.right)
    make("path", { d: `M${here},${axes.top}V${axes.height - axes.bottom}`, class: "here" }, null, axes.inside);
  if (groups.length) {
    legend(box, groups.map((label, g) => ["dot own", label, color(g)]));
    const note = few ? `Bands: ${level} prediction intervals, each group with its own constants.` : "";
    make("p", { class: "note" }, (alone ? "" : "Points: residuals, added to the curves. ") + note
      + (thinned ? ` Points${thinned}.` : ""), box);
    return;
  }
  legend(box, [["dot", (alone ? "data" : "residuals, added to the curve") + thinned], ["line", "best fit"],
    ...(few ? [["narrow", `${level} credible interval`], ["wide", `${level} prediction interval`]] : []),
    ["here", "the input above"], ...(xs[0] < low || xs[xs.length - 1] > high ? [["beyond", "no data"]] : [])]);
};
const drawParity = (law, box) => {
  const fitted = rows.map((i) => best(law, pointOf(i), groupOf(i)));
  const isLog = target.isLog && Math.min(...fitted) > 0, range = rangeOf([...y, ...fitted], 0.05, isLog);
  const axes = frame(box, { x: range, y: range, xLog: isLog, yLog: isLog, xName: `${target.label}, predicted`,
    yName: `${target.label}, observed`, label: "Observed against predicted, law chosen" });
  make("path", { d: trace(axes, range, range), class: "curve" }, null, axes.inside);
  dots(axes, fitted, [...y], yError);
  legend(box, [["dot", "data" + thinned], ["line", "predicted = observed"]]);
};
const drawResiduals = (law) => {
  const residuals = unpack(law.residuals, Float32Array), fitted = rows.map((i) => best(law, pointOf(i), groupOf(i)));
  const name = payload.residualName;
  const xLog = target.isLog && Math.min(...fitted) > 0;
  const axes = frame($("live-residuals"), { x: rangeOf(fitted, 0.05, xLog), xLog, y: rangeOf([...residuals, 0]), yName: name,
    xName: `${target.label}, predicted`, label: "Residuals against predictions, law chosen" });
  make("path", { d: trace(axes, axes.x, [0, 0]), class: "curve" }, null, axes.inside);
  dots(axes, fitted, [...residuals]);
  const order = rows.filter((i) => Number.isFinite(residuals[i])).sort((i, j) => residuals[i] - residuals[j]);
  const sorted = order.map((i) => residuals[i]), n = sorted.length;
  const expected = sorted.map((_, i) => normalQuantile((i + 1 - 0.375) / (n + 0.25)));
  const mean = sorted.reduce((a, b) => a + b, 0) / n;
  const sd = Math.sqrt(sorted.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, n - 1));
  const ends = [expected[0], expected[n - 1]], line = ends.map((q) => mean + sd * q);
  const other = frame($("live-quantiles"), { x: rangeOf(expected), y: rangeOf([...sorted, ...line]),
    xName: "normal quantile", yName: `${name}, sorted`, label: "Quantiles of residuals, law chosen" });
  make("path", { d: trace(other, ends, line), class: "curve" }, null, other.inside);
  dots(other, expected, sorted, null, null, order);
};
const normalQuantile = (p) => {
  let low = -9, high = 9;
  for (let k = 0; k < 60; k++) { const m = 0.5 * (low + high); if (normalCdf(m) < p) low = m; else high = m; }
  return 0.5 * (low + high);
};

// ---- the front, and the families -----------------------------------------------------------
const drawFront = () => {
  const box = $("live-front");
  if (!box) return;
  const all = payload.front.filter((one) => Number.isFinite(one.value));
  const sign = payload.measure === "rmse" ? -1 : 1;
  const sizes = [...new Set(all.map((one) => one.size))].sort((a, b) => a - b);
  const steps = [];
  for (const size of sizes) {
    const top = all.filter((one) => one.size === size).reduce((a, b) => (sign * b.value > sign * a.value ? b : a));
    if (!steps.length || sign * top.value > sign * steps[steps.length - 1].value) steps.push(top);
  }
  const chosen = all.find((one) => one.key === payload.winner);
  const heights = [...steps, ...(chosen ? [chosen] : [])].map((one) => one.value);
  let [bottom, top] = rangeOf(heights, 0.35);
  // Of scores a nat or two are hardly worth mentioning: no picture is of less.
  if (sign > 0) {
    bottom = Math.min(bottom, Math.min(...heights) - 3);
    top = Math.max(top, Math.max(...heights) + 3);
  }
  let shown = all.filter((one) => one.value >= bottom && one.value <= top);
  if (sign < 0) bottom = Math.max(0, bottom);
  const far = all.length - shown.length;
  const axes = frame(box, { x: [sizes[0] - 0.7, sizes[sizes.length - 1] + 0.7], y: [bottom, top],
    xName: `complexity${far ? `; ${far} more further off` : " (nodes)"}`,
    yName: sign > 0 ? "score" : "RMSE", isCount: true, label: "Laws against complexity; each point shows its law" });
  axes.svg.setAttribute("role", "group");
  let path = "";
  steps.forEach((one, i) => { path += i ? `H${axes.px(one.size)}V${axes.py(one.value)}` : `M${axes.px(one.size)},${axes.py(one.value)}`; });
  path += `H${axes.px(sizes[sizes.length - 1] + 0.7)}`;
  make("path", { d: path, class: "curve" }, null, axes.inside);
  shown = shown.sort((a, b) => a.size - b.size || a.value - b.value);
  for (const one of shown) {
    const at = { cx: axes.px(one.size), cy: axes.py(one.value) };
    const isOn = one.key === state.law;
    const mark = make("g", { role: "button", tabindex: isOn ? 0 : -1, "data-law": one.key,
      "aria-pressed": isOn, "aria-label": `${one.text}, ${sign > 0 ? "score" : "RMSE"} ${short(one.value)}`,
      class: `mark${isOn ? " on" : ""}${steps.includes(one) ? " best" : ""}${one.key === payload.winner ? " winner" : ""}` }, null, axes.svg);
    make("title", {}, one.text, mark);
    make("circle", { ...at, r: 12, class: "target" }, null, mark);
    make("circle", { ...at, r: isOn ? 7 : 5, class: "point" }, null, mark);
    mark.addEventListener("click", () => choose(one.key));
    mark.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(one.key); focusMark(one.key); }
      else if (step) {
        event.preventDefault();
        const next = shown[(shown.indexOf(one) + step + shown.length) % shown.length];
        choose(next.key);
        focusMark(next.key);
      }
    });
  }
  if (!shown.some((one) => one.key === state.law)) {
    const first = axes.svg.querySelector(".mark");
    if (first) first.setAttribute("tabindex", 0);
  }
};
const focusMark = (key) => {
  const mark = [...document.querySelectorAll("#live-front .mark")].find((one) => one.dataset.law === key);
  if (mark) mark.focus();
};
const drawFamilies = () => {
  for (const button of document.querySelectorAll("#live-families button"))
    button.setAttribute("aria-pressed", String(button.dataset.law === state.law));
};

// ---- the law chosen ------------------------------------------------------------------------
const rowOf = (key) => document.querySelector(`[data-row="${CSS.escape(key)}"]`);
const show = () => {
  const law = lawOf(state.law), info = payload.about[state.law];
  const name = $("live-name");
  name.textContent = "";
  const row = rowOf(state.law);
  if (row) name.append(...[...row.querySelector(".formula .lines").cloneNode(true).childNodes]);
  const facts = $("live-facts");
  facts.textContent = info.facts;
  const body = $("live-parameters");
  body.textContent = "";
  const table = row && document.getElementById("estimates-" + state.law);
  if (table) body.append(table.content.cloneNode(true));
  $("live-note").textContent = !law
    ? "This page cannot compute this law: pmsr predict can."
    : law.parts[0].n ? "" : "Its posterior was not sampled: there are no intervals, and its numbers are those of the best fit.";
  for (const id of ["live-fit", "live-residuals", "live-quantiles"]) $(id).textContent = "";
  if (law) { drawFit(law); drawResiduals(law); }
  for (const other of document.querySelectorAll("[data-row]"))
    other.classList.toggle("shown", other.dataset.row === state.law);
  for (const button of document.querySelectorAll("button.pick"))
    button.setAttribute("aria-pressed", String(button.dataset.law === state.law));
  $("live-choice").value = state.law;
  drawFamilies();
};
const ask = () => {
  const law = lawOf(state.law), box = $("live-inputs");
  box.textContent = "";
  $("live-whose").textContent = state.law === payload.winner ? "" : payload.about[state.law].title;
  if (!law) { $("live-answer").textContent = "Not in this page."; return; }
  const used = usedBy(law);
  if (groups.length) {
    const line = make("div", { class: "input" }, null, box);
    make("label", { for: "input-group" }, "group", line);
    const choice = make("select", { id: "input-group" }, null, line);
    groups.forEach((label, g) => make("option", { value: g }, label, choice));
    choice.value = state.group;
    choice.addEventListener("change", () => { state.group = Number(choice.value); answer(); drawFit(law); });
  }
  for (const k of used) {
    const { name, isLog } = columns[k], to = isLog ? Math.log10 : (v) => v, from = isLog ? (v) => 10 ** v : (v) => v;
    const [start, end] = beyond(columns[k]).map(to);
    const line = make("div", { class: "input" }, null, box);
    make("label", { for: `input-${k}` }, named(k), line);
    const field = make("input", { type: "number", id: `input-${k}`, step: "any", value: state.point[k] }, null, line);
    const slider = make("input", { type: "range", min: start, max: end, step: "any", value: to(state.point[k]),
      "aria-label": `${name}, by a slider` }, null, line);
    const change = (text) => {
      const value = Number(text);
      if (text === "" || !Number.isFinite(value)) { $("live-answer").textContent = "Type a number."; return; }
      state.point[k] = value;
      answer();
      drawFit(law);
    };
    field.addEventListener("input", () => { slider.value = to(Number(field.value)); change(field.value); });
    slider.addEventListener("input", () => {
      const value = Number(from(Number(slider.value)).toPrecision(4));
      field.value = value;
      change(String(value));
    });
    if (used.length > 1) {
      const along = make("label", { class: "along" }, null, line);
      const pick = make("input", { type: "radio", name: "along", value: k }, null, along);
      pick.checked = (used.includes(state.along) ? state.along : used[0]) === k;
      along.append(" draw along it");
      pick.addEventListener("change", () => { state.along = k; drawFit(law); });
    }
  }
  if (!used.length) make("p", { class: "note" }, "It depends on nothing.", box);
  answer();
};
const answer = () => {
  const law = lawOf(state.law), box = $("live-answer"), draws = drawsOf(law);
  box.textContent = "";
  const value = draws ? predict(law, state.point, draws) : { mean: best(law, state.point) };
  box.dataset.mean = value.mean;
  box.dataset.low = value.newLow;
  box.dataset.high = value.newHigh;
  if (!Number.isFinite(value.mean)) { box.textContent = "Not defined there."; return; }
  const digits = draws ? digitsFor(value.newLow, value.newHigh) : 4;
  const isThin = draws && draws.n < draws.of, size = draws ? Math.max(Math.abs(value.newLow), Math.abs(value.newHigh)) : 0;
  const write = (v) => short(v, isThin ? 3 : digits, size);
  make("strong", {}, `${isThin ? "≈ " : ""}${write(value.mean)}${target.unitText}`, box);
  if (draws) {
    make("span", { class: "span" }, `${level}: ${write(value.newLow)} to ${write(value.newHigh)}`, box);
    make("small", {}, `where a new ${target.name} falls; the law itself ${write(value.low)} to ${write(value.high)}`, box);
  }
  const far = usedBy(law).filter((k) => state.point[k] < columns[k].low || state.point[k] > columns[k].high);
  if (far.length) make("small", { class: "far" }, `Outside the data in ${far.map((k) => columns[k].name).join(", ")}: `
    + "this holds only if the law does.", box);
  if (isThin) make("small", {}, `From ${draws.n} of ${draws.of} draws.`, box);
};
const choose = (key, scroll = false) => {
  state.law = key;
  show();
  ask();
  drawFront();
  if (scroll) $("fit").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
};

// ---- start ---------------------------------------------------------------------------------
try {
  page.classList.add("js");
  const choice = $("live-choice");
  for (const [key, about] of Object.entries(payload.about)) make("option", { value: key }, about.title, choice);
  choice.addEventListener("change", () => choose(choice.value));
  for (const row of document.querySelectorAll("[data-row]")) {
    const key = row.dataset.row, place = row.querySelector(".rank");
    const button = make("button", { type: "button", class: "pick", "data-law": key,
      "aria-label": `Show law ${place.textContent}` }, place.textContent);
    place.replaceChildren(button);
    button.addEventListener("click", (event) => { event.stopPropagation(); choose(key, true); });
    row.addEventListener("click", (event) => {
      if (event.target.closest("summary, details") && !event.target.closest("table.members [data-row]")) return;
      if (event.target.closest("[data-row]") !== row || String(getSelection())) return;
      choose(key, true);
    });
  }
  for (const button of document.querySelectorAll("#live-families button"))
    button.addEventListener("click", () => choose(button.dataset.law));
  choose(payload.winner);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) { width = innerWidth; show(); drawFront(); }
  });
} catch (error) {
  page.classList.remove("js");  // the pictures are there without a script, too
  throw error;
}
})();
