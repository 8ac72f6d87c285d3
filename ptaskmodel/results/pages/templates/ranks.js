"use strict";
/* What ranks of a replay did when: states as colours in their bars, messages, the critical path.
   `data`: see pages/mpi.py. */
function rankTimeline(data) {
const MOST_MESSAGES = 1500;  // in view; more would be a black area
const tick = data.tick;
const ranks = data.ranks.map((flat) => {
  const from = [], to = [], state = [];
  for (let k = 0, at = 0; k < flat.length; k += 3) { at += flat[k]; from.push(at * tick); at += flat[k + 1]; to.push(at * tick); state.push(flat[k + 2]); }
  return {from, to, state};
});
/* The first span that ends after a date. */
function first(to, date) {
  let low = 0, high = to.length;
  while (low < high) { const middle = (low + high) >> 1; if (to[middle] > date) high = middle; else low = middle + 1; }
  return low;
}
/* The bar of a rank; of spans that are narrower than a pixel, what it did most in that pixel. */
function bar(pen, k, view, toX, y, high) {
  const {from, to, state} = ranks[k];
  let pixel = -1, spent = [];
  const fill = (a, b, s) => { pen.fillStyle = colour(data.states[s][1]); pen.fillRect(a, y, b - a, high); };
  const flush = () => { if (spent.length) fill(pixel, pixel + 1, spent.reduce((best, time, s) => time > (spent[best] || 0) ? s : best, state[0])); spent = []; };
  for (let n = first(to, view[0]); n < from.length && from[n] < view[1]; n++) {
    const a = toX(from[n]), b = toX(to[n]);
    if (b - a >= 1) { flush(); fill(a, b, state[n]); continue; }
    if (Math.floor(a) !== pixel) { flush(); pixel = Math.floor(a); }
    spent[state[n]] = (spent[state[n]] || 0) + b - a;
  }
  flush();
}
function at(k, date) {
  const {from, to, state} = ranks[k], n = first(to, date);
  return n < from.length && from[n] <= date ? [data.states[state[n]][0], from[n], to[n]] : null;
}
const line = (pen, points) => { pen.beginPath(); for (const [x, y] of points) pen.lineTo(x, y); pen.stroke(); };
function lines(pen, view, toX, toY) {
  const inView = data.messages.filter((m) => m[3] * tick >= view[0] && m[2] * tick <= view[1]);
  if (inView.length <= MOST_MESSAGES) {
    pen.strokeStyle = colour("soft"); pen.lineWidth = 0.7;
    for (const [source, target, from, to] of inView) line(pen, [[toX(from * tick), toY(source)], [toX(to * tick), toY(target)]]);
  }
  const path = data.path.flatMap(([rank, to, from, until]) => [[toX(from * tick), toY(rank)], [toX(until * tick), toY(to)]]);
  pen.lineJoin = "round";
  for (const [role, width] of [["paper", 5], ["ink", 2.5]]) { pen.strokeStyle = colour(role); pen.lineWidth = width; if (path.length) line(pen, path); }
  pen.lineWidth = 1;
}
const there = new Set(ranks.flatMap(({state}) => [...new Set(state)]));
const roles = new Map();
data.states.forEach(([name, role], s) => { if (there.has(s)) roles.set(role, [...(roles.get(role) || []), name]); });
const legend = [...roles].map(([role, names]) => [names.join(", "), role]);
if (data.messages.length) legend.push(["message", "soft"]);
if (data.path.length) legend.push(["critical path", "ink"]);
return {bar, at, lines, legend};
}
