"use strict";
/* The time panel: who ran where, the machine, the queue and links by level, on one axis of time with one zoom.
   `data`: see report.page_data; `tools`: {timeline of ranks or null, picked(task), filter(): [members, text] or null}. */
const [ID, PROFILE, START, FINISH, STATE, RUNS, SLOW, LIMIT, LIMIT_S, SHARED, WAITED, USER] = Array(12).keys();
function timePanel(data, tools) {
const tasks = data.tasks, end = data.end || 1, {timeline} = tools, ofRanks = data.what === "rank";
const until = (t) => t[FINISH] === null ? end : t[FINISH];
const names = ofRanks ? tasks.map((t) => t[ID]) : data.hosts, killed = new Set(data.killed);
const AXIS = 22, OVERVIEW = 26, GAP = 10, MOST_HOSTS = 150, MOST_HIGH = 460, STRIP = data.stopped ? 14 : 0;
const grouped = names.length > MOST_HOSTS ? data.groups : null;  // [name, first host, hosts]
const rowHeight = Math.max(grouped ? MOST_HIGH / names.length : 3, Math.min(26, MOST_HIGH / Math.max(names.length, 1)));
const ganttHigh = names.length * rowHeight;
let view = [0, end], chosen = -1, cross = null;
/* Dates of tasks; those that never ran begin at no time. */
const begins = Float64Array.from(tasks, (t) => t[START] ?? Infinity), ends = Float64Array.from(tasks, until);
const ran = tasks.map((_, k) => k).filter((k) => tasks[k][START] !== null && (ofRanks || tasks[k][RUNS].length)).sort((a, b) => tasks[a][START] - tasks[b][START] || a - b);
/* First host, host after the last, of each run of hosts of a task: one after the other; of task k from places[k] on. */
const flat = [], places = new Int32Array(tasks.length + 1), hostsOf = new Int32Array(tasks.length);
tasks.forEach((t, k) => {
  const its = ofRanks ? [k, 1] : t[RUNS];
  for (let n = 0, at = 0; n < its.length; n += 2) { const from = at + its[n]; at = from + its[n + 1]; flat.push(from, at); hostsOf[k] += at - from; }
  places[k + 1] = flat.length;
});
const hosts = Int32Array.from(flat);
/* [[first host, host after the last], ...] of a task. */
const runs = (k) => Array.from({length: (places[k + 1] - places[k]) / 2}, (_, n) => [hosts[places[k] + 2 * n], hosts[places[k] + 2 * n + 1]]);
/* Those that are on a host at once lie in lanes of its row: of each host [task => [lane, lanes]]; null where nobody shares a host. */
const lanes = (() => {
  const many = hostsOf.reduce((a, b) => a + b, 0) > 500000;
  if (many || ofRanks) return null;
  const on = names.map(() => []);
  for (const k of ran) for (const [from, to] of runs(k)) for (let h = from; h < to; h++) on[h].push(k);
  let shared = false;
  const found = on.map((members) => {
    const places = new Map();
    let group = [], ends = [], last = -Infinity;
    const close = () => { for (const [k, lane] of group) places.set(k, [lane, ends.length]); if (ends.length > 1) shared = true; group = []; ends = []; };
    for (const k of members) {
      if (tasks[k][START] >= last && group.length) { close(); last = -Infinity; }
      let lane = ends.findIndex((one) => one <= tasks[k][START]);
      if (lane < 0) lane = ends.length;
      ends[lane] = until(tasks[k]); last = Math.max(last, ends[lane]); group.push([k, lane]);
    }
    close();
    return places;
  });
  return shared ? found : null;
})();

/* Colours: each choice is {name, of(task) => part of a scale or null, legend} or {name, group(task) => k, colours, names}. */
const largest = (values) => values.reduce((a, b) => Math.max(a, b ?? 0), 0);
const logPart = (value, most) => value > 0 && most > 1 ? Math.log(1 + value) / Math.log(1 + most) : 0;
const counted = (column) => { const found = new Map(); for (const k of ran) { const name = tasks[k][column]; if (name !== null && name !== "") found.set(name, (found.get(name) || 0) + hostsOf[k] * (until(tasks[k]) - tasks[k][START])); } return [...found].sort((a, b) => b[1] - a[1]).map(([name]) => name); };
function categories(name, column) {
  const order = counted(column), shown = order.slice(0, CATEGORIES.length), place = new Map(shown.map((one, k) => [one, k]));
  return {name, group: (k) => place.get(tasks[k][column]) ?? shown.length, colours: [...CATEGORIES.slice(0, shown.length), "nothing"], names: order.length > shown.length || !shown.length ? [...shown, "others"] : shown, count: order.length};
}
function stateColours() {
  const ordinary = (state) => killed.has(state) ? "lost" : state === "ended" ? "use" : "nothing", order = counted(STATE), place = new Map(order.map((one, k) => [one, k]));
  return {name: "state", group: (k) => place.get(tasks[k][STATE]), colours: order.map(ordinary), names: order, count: order.length};
}
const slowest = largest(tasks.map((t) => t[SLOW])), waited = largest(tasks.map((t) => t[WAITED])), widest = largest(hostsOf);
const choices = timeline ? {} : Object.fromEntries([
  tasks.some((t) => t[SLOW] !== null) && ["slowdown", {name: "slowdown", of: (k) => tasks[k][SLOW] === null ? null : (tasks[k][SLOW] - 1) / 3, from: "1", to: "4 or more"}],
  slowest > 4 && ["slowest", {name: "slowdown (log)", of: (k) => tasks[k][SLOW] === null ? null : Math.log(Math.max(tasks[k][SLOW], 1)) / Math.log(slowest), from: "1", to: numbers.number(slowest)}],
  waited > 0 && ["waiting", {name: "waiting", of: (k) => tasks[k][WAITED] === null ? null : logPart(tasks[k][WAITED], waited), from: "0 s", to: `${numbers.duration(waited)} (log)`}],
  ["state", stateColours()],
  counted(USER).length && ["user", categories("user", USER)],
  ["size", {name: "hosts", of: (k) => logPart(hostsOf[k], widest), from: "1", to: `${numbers.count(widest, "host")} (log)`}],
  counted(LIMIT).length && ["limit", categories("what limited it most", LIMIT)],
].filter(Boolean));
/* Where most are beyond the scale of all pages, a longer one. */
const beyond = tasks.reduce((n, t) => n + (t[SLOW] === null ? 0 : t[SLOW] > 4 ? 1 : -1), 0) > 0;
let by = beyond ? choices.slowest : slowest > 1.001 ? choices.slowdown : choices.waiting || choices.slowdown || choices.state || null;
const fillOf = (k) => by.of ? (by.of(k) === null ? colour("nothing") : heat(by.of(k))) : colour(by.colours[by.group(k)]);
function legend() {
  const node = $("legend");
  node.textContent = "";
  const item = (text, back, wide) => { const one = add(node, "span", undefined, {className: "key"}); add(one, "i", undefined, {className: wide ? "wide" : ""}).style.background = back; if (text) add(one, "span", text); return one; };
  if (timeline) { for (const [name, role] of timeline.legend) item(name, colour(role)); return; }
  if (by.of) {
    const one = add(node, "span", undefined, {className: "key"});
    add(one, "span", `${by.name}: ${by.from}`); add(one, "i", undefined, {className: "wide"}).style.background = gradient(); add(one, "span", by.to);
    if (ran.some((k) => by.of(k) === null)) item("not known", colour("nothing"));
  } else by.names.forEach((name, k) => item(elided(name, 32), colour(by.colours[k])));
  if (ran.some((k) => killed.has(tasks[k][STATE]))) item("right edge: killed", colour("lost"));
  for (const track of data.tracks.filter((one) => one.layers)) { add(node, "span", `${track.name}:`, {className: "key"}); for (const layer of track.layers) item(layer.name, colour(layer.role)); }
}

/* Tracks below: {name, kind: "area" or "heat", width: of a cell in s, mean, most, limit, role, share}. */
const HIGH = {area: 64, heat: 13};
const tracks = [];
for (const track of data.tracks) {
  if (track.kind === "heat") tracks.push({...track, label: track.name, note: "max", values: track.most}, {...track, label: `full ${numbers.share(track.full)}`, note: "mean", values: track.mean});
  else tracks.push({...track, label: track.name, values: track.mean});
}
const left = (width) => width < 560 ? 84 : 168;
const toX = (time, width) => left(width) + (time - view[0]) / (view[1] - view[0]) * (width - left(width) - 8 - STRIP);
const top = OVERVIEW + AXIS;
let total = 0;
function hatch(pen, x, y, high) {
  if (!STRIP) return;
  pen.save(); pen.beginPath(); pen.rect(x, y, STRIP, high); pen.clip();
  pen.fillStyle = colour("panel"); pen.fillRect(x, y, STRIP, high);
  pen.strokeStyle = colour("soft"); pen.lineWidth = 1; pen.beginPath();
  for (let at = y - STRIP; at < y + high + STRIP; at += 6) { pen.moveTo(x, at + STRIP); pen.lineTo(x + STRIP, at); }
  pen.stroke(); pen.restore();
}
/* Use over the whole run, above, with the part that is in view. */
const busy = (() => {
  const cells = new Float64Array(300), width = end / cells.length;
  for (const k of ran) {
    const from = tasks[k][START], to = until(tasks[k]), last = Math.min(Math.floor(to / width), cells.length - 1);
    for (let c = Math.floor(from / width); c <= last; c++) cells[c] += hostsOf[k] * Math.max(Math.min(to, (c + 1) * width) - Math.max(from, c * width), 0) / width;
  }
  return cells;
})();
function overview(pen, width) {
  const from = left(width), wide = width - from - 8 - STRIP, most = busy.reduce((a, b) => Math.max(a, b), 1e-300);
  pen.fillStyle = colour("panel"); pen.fillRect(from, 0, wide, OVERVIEW - 4);
  pen.fillStyle = colour("use");
  busy.forEach((value, k) => { const high = (OVERVIEW - 6) * value / most; pen.fillRect(from + k * wide / busy.length, OVERVIEW - 4 - high, wide / busy.length + 0.5, high); });
  pen.strokeStyle = colour("ink"); pen.lineWidth = 2;
  pen.strokeRect(from + view[0] / end * wide, 1, Math.max((view[1] - view[0]) / end * wide, 3), OVERVIEW - 6);
  pen.fillStyle = colour("soft"); pen.textAlign = "left"; pen.textBaseline = "middle"; pen.fillText("whole run", 0, OVERVIEW / 2);
}
function axis(pen, width, below) {
  pen.strokeStyle = colour("line"); pen.lineWidth = 1; pen.fillStyle = colour("soft"); pen.textAlign = "center"; pen.textBaseline = "middle";
  for (const [mark, text] of numbers.dates(view[0], view[1], width - left(width), end, data.epoch)) {
    const x = toX(mark, width), half = pen.measureText(text).width / 2;
    pen.beginPath(); pen.moveTo(x, top); pen.lineTo(x, below); pen.stroke();
    pen.fillText(text, Math.min(Math.max(x, left(width) - 30 + half), width - half), OVERVIEW + AXIS / 2);
  }
}
function rowNames(pen, width) {
  pen.fillStyle = colour("soft"); pen.textAlign = "left"; pen.textBaseline = "middle";
  const most = Math.floor((left(width) - 6) / 6.6);
  if (!grouped) { const every = Math.ceil(14 / rowHeight); for (let h = 0; h < names.length; h += every) pen.fillText(tools.hostLabel(names[h], most), 0, top + (h + 0.5) * rowHeight); return; }
  let last = -Infinity;
  for (const [name, first, count] of grouped) { const y = top + (first + count / 2) * rowHeight; if (y - last >= 14) { pen.fillText(elided(name, most), 0, y); last = y; } }
}
let crowded = false;
function gantt(pen, width) {
  const from = left(width), wide = width - from - 8 - STRIP, filter = tools.filter();
  const inView = ran.filter((k) => ends[k] >= view[0] && begins[k] <= view[1]);
  crowded = !timeline && inView.reduce((n, k) => n + (lanes ? hostsOf[k] : (places[k + 1] - places[k]) / 2), 0) > 2 * wide;
  pen.save(); pen.beginPath(); pen.rect(from, top, wide + STRIP, ganttHigh); pen.clip();
  if (crowded) cells(pen, from, Math.floor(wide), inView, filter);
  else for (const k of inView) bar(pen, k, width, filter && !filter[0].has(k));
  if (chosen >= 0 && tasks[chosen][START] !== null) {
    pen.strokeStyle = colour("ink"); pen.lineWidth = 2;
    const a = toX(tasks[chosen][START], width), b = toX(until(tasks[chosen]), width);
    for (const [h, to] of runs(chosen)) pen.strokeRect(a, top + h * rowHeight, Math.max(b - a, 2), (to - h) * rowHeight);
  }
  if (view[1] >= end) hatch(pen, toX(end, width), top, ganttHigh);
  if (timeline) timeline.lines(pen, view, (time) => toX(time, width), (rank) => top + (rank + 0.5) * rowHeight);
  pen.restore();
  return inView.length;
}
function bar(pen, k, width, dim) {
  const t = tasks[k], a = toX(t[START], width), b = Math.max(toX(until(t), width), a + 0.7), gap = rowHeight > 6 ? 1 : 0;
  let best = [0, 0, 0];
  pen.globalAlpha = dim ? 0.15 : 1;
  const box = (y, high) => {
    if (timeline) { timeline.bar(pen, k, view, (time) => toX(time, width), y, high); return; }
    pen.fillStyle = fillOf(k); pen.fillRect(a, y, b - a - (b - a > 4 ? 0.5 : 0), Math.max(high, 0.5));
    if (killed.has(t[STATE])) {
      pen.fillStyle = colour("lost"); const edge = Math.min(3, b - a); pen.fillRect(b - edge, y, edge, Math.max(high, 0.5));
      if (high > 12 && b - a > 14) { pen.save(); pen.beginPath(); pen.rect(b - 12, y, 9, high); pen.clip(); pen.strokeStyle = colour("lost"); pen.lineWidth = 1; pen.beginPath(); for (let at = y - 12; at < y + high + 12; at += 5) { pen.moveTo(b - 12, at + 9); pen.lineTo(b - 3, at); } pen.stroke(); pen.restore(); }
    }
    if (high > best[1]) best = [y, high];
  };
  for (const [from, to] of runs(k)) {
    if (!lanes) { box(top + from * rowHeight + gap / 2, (to - from) * rowHeight - gap); continue; }
    for (let h = from; h < to; h++) { const [lane, n] = lanes[h].get(k), part = (rowHeight - gap) / n; box(top + h * rowHeight + gap / 2 + lane * part, part - (part > 5 ? 0.5 : 0)); }
  }
  const from = Math.max(a, left(width)), room = Math.min(b, width - 8) - from;
  if (!ofRanks && best[1] >= 12 && room > 24) {
    const fits = Math.floor((room - 8) / 7), text = t[ID].length <= fits ? t[ID] : fits > 5 ? elided(t[ID], fits) : "";
    pen.fillStyle = inkOn(fillOf(k)); pen.textAlign = "left"; pen.textBaseline = "middle";
    pen.fillText(text, from + 4, best[0] + best[1] / 2);
  }
  pen.globalAlpha = 1;
}
/* Too many bars: in each cell of a host, or of a group of hosts, and of some pixels, the mean of an amount, or what there is most. */
function cells(pen, from, wide, inView, filter) {
  const across = 2, columns = Math.ceil(wide / across), group = new Int32Array(names.length), spans = grouped || names.map((name, h) => [name, h, 1]);
  spans.forEach(([, first, count], g) => group.fill(g, first, first + count));
  const kinds = by.of ? 1 : by.colours.length, n = spans.length * columns, weight = new Float32Array(n), sums = new Float32Array(n * kinds);
  const scale = columns / (view[1] - view[0]), highest = columns - 1, values = by.values || (by.values = tasks.map((_, k) => (by.of || by.group)(k)));
  for (const k of inView) {
    if (filter && !filter[0].has(k)) continue;
    const value = values[k];
    const a = Math.max((begins[k] - view[0]) * scale, 0), b = Math.min((ends[k] - view[0]) * scale, columns), first = Math.min(Math.floor(a), highest), last = Math.min(Math.floor(b), highest);
    for (let r = places[k]; r < places[k + 1]; r += 2) {
      const h = hosts[r], to = hosts[r + 1];
      for (let g = group[h]; g <= group[to - 1]; g++) {
        const many = Math.min(to, spans[g][1] + spans[g][2]) - Math.max(h, spans[g][1]);
        for (let c = first; c <= last; c++) {
          const part = many * (Math.min(b, c + 1) - Math.max(a, c)), at = g * columns + c;
          weight[at] += part;
          if (!by.of) sums[at * kinds + value] += part; else if (value !== null) sums[at] += part * value;
        }
      }
    }
  }
  const shades = (by.of ? Array.from({length: 65}, (_, k) => heat(k / 64)) : by.colours.map(colour)).map(channels);
  const image = new ImageData(columns, spans.length), picture = Object.assign(document.createElement("canvas"), {width: columns, height: spans.length});
  spans.forEach(([, , count], g) => {
    for (let c = 0; c < columns; c++) {
      const at = g * columns + c;
      if (weight[at] < 0.02 * count) continue;
      let shade = 0;
      if (by.of) shade = Math.round(64 * Math.min(Math.max(sums[at] / weight[at], 0), 1));
      else for (let kind = 1; kind < kinds; kind++) if (sums[at * kinds + kind] > sums[at * kinds + shade]) shade = kind;
      image.data.set(shades[shade], 4 * at); image.data[4 * at + 3] = 255 * Math.min(0.25 + 0.75 * weight[at] / count, 1);
    }
  });
  picture.getContext("2d").putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  spans.forEach(([, begin, count], g) => pen.drawImage(picture, 0, g, columns, 1, from, top + begin * rowHeight, columns * across, Math.max(count * rowHeight - (count * rowHeight > 5 ? 1 : 0), 0.8)));
}
function drawTrack(pen, width, track, y) {
  const from = left(width), wide = width - from - 8 - STRIP, {values, width: cell} = track, high = HIGH[track.kind];
  pen.save(); pen.beginPath(); pen.rect(from, y - 1, wide, high + 2); pen.clip();
  const first = Math.max(Math.floor(view[0] / cell), 0), last = Math.min(Math.ceil(view[1] / cell), values.length);
  if (track.kind === "heat") {
    for (let k = first; k < last; k++) { const a = toX(k * cell, width), b = toX((k + 1) * cell, width); pen.fillStyle = values[k] ? heat(values[k] / 1000) : colour("nothing"); pen.fillRect(Math.floor(a), y, Math.ceil(b) - Math.floor(a), high - 1); }
    pen.restore();
  } else {
    const tallest = track.limit || track.top || 1;
    const rise = (value) => y + high * (1 - value / tallest);
    pen.strokeStyle = colour("line"); pen.lineWidth = 1; pen.beginPath(); for (const level of [0, tallest]) { pen.moveTo(from, rise(level)); pen.lineTo(from + wide, rise(level)); } pen.stroke();
    if (track.layers) for (let k = first; k < last; k++) {
      const a = Math.floor(toX(k * cell, width)), b = Math.ceil(toX((k + 1) * cell, width));
      let below = 0;
      for (const layer of track.layers) { const from = rise(below), to = rise(below += layer.mean[k]); pen.fillStyle = colour(layer.role); pen.fillRect(a, to, b - a, from - to); }
    } else for (const [list, alpha] of track.most ? [[track.most, 0.35], [values, 1]] : [[values, 1]]) {
      pen.fillStyle = colour(track.role); pen.globalAlpha = alpha;
      for (let k = first; k < last; k++) if (list[k]) { const a = Math.floor(toX(k * cell, width)), b = Math.ceil(toX((k + 1) * cell, width)); pen.fillRect(a, rise(list[k]), b - a, y + high - rise(list[k])); }
      pen.globalAlpha = 1;
    }
    pen.restore();
    pen.fillStyle = colour("soft"); pen.textAlign = "right"; pen.textBaseline = "middle";
    pen.fillText((numbers[track.of] || numbers.number)(tallest), from - 4, y + 5); pen.fillText("0", from - 4, y + high - 5);
  }
  if (view[1] >= end) hatch(pen, toX(end, width), y, high);
  pen.fillStyle = colour("soft"); pen.textBaseline = "middle"; pen.textAlign = "left";
  const room = Math.floor((from - (width < 560 ? 4 : 34)) / 6.4);
  if (track.label) pen.fillText(track.label.length <= room ? track.label : elided(track.label.replace(/ \(.*/, ""), room), 0, y + high / 2);
  if (track.note && width >= 560) { pen.textAlign = "right"; pen.fillText(track.note, from - 4, y + high / 2); }
}
const gapAbove = (k) => tracks[k].note === "mean" ? 1 : GAP;
function redraw() {
  total = top + ganttHigh + tracks.reduce((sum, track, k) => sum + gapAbove(k) + HIGH[track.kind], 0) + 4;
  const [pen, width] = sized($("panel"), total);
  axis(pen, width, total - 4);
  overview(pen, width);
  rowNames(pen, width);
  const drawn = gantt(pen, width);
  let y = top + ganttHigh;
  tracks.forEach((track, k) => { y += gapAbove(k); track.y = y; drawTrack(pen, width, track, y); y += HIGH[track.kind]; });
  behind.width = 0;
  drawCross();
  $("range").textContent = (view[0] > 0 || view[1] < end ? `${numbers.date(view[0], end, data.epoch)} to ${numbers.date(view[1], end, data.epoch)}` : "the whole run") + (crowded ? `; a cell is ${numbers.duration(2 * (view[1] - view[0]) / Math.max(width - left(width), 1))}${grouped ? " of a group of hosts" : " of a host"}: zoom in for single ${data.what}s` : "");
  $("panel").dataset.drawn = drawn;
}
/* The line under the pointer, over the panel as it was drawn, which is kept once there is a line. */
const behind = document.createElement("canvas");
function drawCross() {
  const canvas = $("panel"), pen = canvas.getContext("2d"), ratio = canvas.width / canvas.clientWidth;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  if (behind.width) { pen.clearRect(0, 0, canvas.width, canvas.height); pen.drawImage(behind, 0, 0); }
  else if (cross !== null) { behind.width = canvas.width; behind.height = canvas.height; behind.getContext("2d").drawImage(canvas, 0, 0); }
  if (cross !== null) { pen.fillStyle = colour("ink"); pen.fillRect(Math.round(cross * ratio), OVERVIEW * ratio, ratio, canvas.height); }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
}
/* The tracks as numbers, over equal parts of what is in view. */
function asRows() {
  const ROWS = 48, width = (view[1] - view[0]) / ROWS, shown = tracks.map((track) => track.note ? `${track.name}, ${track.note}` : track.name);
  const over = ({values, width: cell, note}, a, b) => {
    let sum = 0, most = 0;
    for (let k = Math.floor(a / cell); k < Math.min(Math.ceil(b / cell), values.length); k++) { sum += values[k] * (Math.min(b, (k + 1) * cell) - Math.max(a, k * cell)); most = Math.max(most, values[k]); }
    return note === "max" ? most : sum / (b - a);
  };
  return [{caption: "Use and queue over what is in view", heads: ["from", ...shown], kinds: ["date", ...tracks.map((track) => track.kind === "heat" ? "share" : track.of || "number")], date: (x) => numbers.date(x, end, data.epoch), end, order: null,
    rows: Array.from({length: ROWS}, (_, r) => { const a = view[0] + r * width; return [a, ...tracks.map((track) => over(track, a, a + width) / (track.kind === "heat" ? 1000 : 1))]; })}];
}
const again = soon(redraw), crossAgain = soon(drawCross);
function move(from, span) {
  const wide = Math.min(Math.max(span, end * 1e-9), end), start = Math.min(Math.max(from, 0), Math.max(end - wide, 0));
  view = [start, start + wide];
  again();
}
function zoom(factor, at) {
  const centre = at === undefined ? (view[0] + view[1]) / 2 : at, span = Math.min((view[1] - view[0]) * factor, end);
  move(centre - (centre - view[0]) / (view[1] - view[0]) * span, span);
}
const pan = (part) => move(view[0] + part * (view[1] - view[0]), view[1] - view[0]);
const all = () => move(0, end);
$("zoom-in").onclick = () => zoom(0.5); $("zoom-out").onclick = () => zoom(2); $("left").onclick = () => pan(-0.3); $("right").onclick = () => pan(0.3); $("zoom-all").onclick = all;
keys($("panel"), {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "0": all, Escape: () => tools.picked(-1)});
const area = () => $("panel").getBoundingClientRect();
const timeAt = (x) => { const width = area().width; return view[0] + (x - left(width)) / (width - left(width) - 8 - STRIP) * (view[1] - view[0]); };
const inOverview = (event) => event.clientY - area().top < OVERVIEW;
function taskAt(event) {
  const y = event.clientY - area().top - top, h = Math.floor(y / rowHeight), time = timeAt(event.clientX - area().left), slack = (view[1] - view[0]) / area().width;
  if (y < 0 || h >= names.length) return -1;
  const here = ran.filter((k) => tasks[k][START] - slack <= time && time <= until(tasks[k]) + slack && runs(k).some(([from, to]) => from <= h && h < to));
  return (lanes ? here.find((k) => { const [lane, n] = lanes[h].get(k); return Math.floor((y - h * rowHeight) / rowHeight * n) === lane; }) : undefined) ?? here[0] ?? -1;
}
function trackAt(event) {
  const y = event.clientY - area().top, time = timeAt(event.clientX - area().left), track = tracks.find((one) => y >= one.y && y < one.y + HIGH[one.kind]);
  if (!track) return "";
  const k = Math.min(Math.max(Math.floor(time / track.width), 0), track.values.length - 1), says = (value) => track.kind === "heat" ? numbers.share(value / 1000) : (numbers[track.of] || numbers.number)(value);
  const means = track.layers ? `${track.name}: ${track.layers.map((layer) => `${layer.name} ${says(layer.mean[k])}`).join(", ")}` : track.kind === "heat" ? `${track.name}: ${track.note} ${says(track.values[k])}` : `${track.name}: ${says(track.values[k])} on average` + (track.most ? `, ${says(track.most[k])} at most` : "");
  return `${means}\n${numbers.date(k * track.width, end, data.epoch)}, for ${numbers.duration(track.width)}${track.full === undefined ? "" : `\nfull for ${numbers.share(track.full)} of the time`}`;
}
pointing($("panel"), {
  begun: (event) => { if (inOverview(event)) { const width = area().width, at = (event.clientX - area().left - left(width)) / (width - left(width) - 8 - STRIP) * end; move(at - (view[1] - view[0]) / 2, view[1] - view[0]); } },
  dragged: (dx, _, event) => { const width = area().width - left(area().width) - 8 - STRIP; if (inOverview(event)) move(view[0] + dx / width * end, view[1] - view[0]); else pan(-dx / width); },
  pinched: (factor, x) => zoom(1 / factor, timeAt(x)),
  pointed: (event, gone) => {
    const x = event.clientX - area().left;
    cross = gone || x < left(area().width) ? null : x;
    crossAgain();
    if (gone) return;
    const k = taskAt(event);
    tip(event, k >= 0 ? tools.describe(k, timeAt(x)) : trackAt(event));
  },
  clicked: (event) => { if (inOverview(event)) return; const y = event.clientY - area().top, track = tracks.find((one) => y >= one.y && y < one.y + HIGH[one.kind]); if (track && track.members) tools.pickedLevel(track); else tools.picked(taskAt(event)); },
});
for (const [key, choice] of Object.entries(choices)) add($("colour"), "option", choice.name, {value: key, selected: choice === by});
$("colour").hidden = !Object.keys(choices).length; document.querySelector("label[for=colour]").hidden = $("colour").hidden;
$("colour").addEventListener("change", () => { by = choices[$("colour").value]; legend(); again(); });
if (tracks.length) asTable($("panel-table"), asRows);
/* Draws one more track, in the place of the one before. */
function also(track) {
  if (tracks.at(-1)?.also) tracks.pop();
  tracks.push({...track, label: track.name, values: track.mean, also: true});
  again();
}
return {
  also,
  redraw: () => { legend(); redraw(); }, again,
  choose: (k) => { chosen = k; again(); },
  show: (k) => { const t = tasks[k]; if (t[START] !== null) { const span = Math.min(Math.max(until(t) - t[START], end * 1e-9) * 2, end); move((t[START] + until(t)) / 2 - span / 2, span); } },
  until, runs, hostsOf,
};
}
