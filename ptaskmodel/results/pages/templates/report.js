"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442"];
// Five digits, but all of those before the point.
const number = (x) => x === null || x === undefined ? "" : Math.abs(x) >= 1e4 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(5)));
const seconds = (x) => x === null || x === undefined ? "" : `${number(x)} s`;
// Dates keep all digits to the millisecond, of short runs to a millionth: rounded ones would show jobs that overlap.
const DIGITS = data.end >= 10 ? 3 : data.end >= 0.01 ? 6 : 9;
const date = (x) => x === null || x === undefined ? "" : x.toLocaleString("en", {maximumFractionDigits: DIGITS});
const span = (x) => x >= 86400 ? `${number(x / 86400)} d` : x >= 3600 ? `${number(x / 3600)} h` : x >= 1 ? `${number(x)} s` : x >= 1e-3 || !x ? `${number(x * 1000)} ms` : `${number(x * 1e6)} µs`;
const tasks = data.tasks;  // [id, profile, start, finish, state, hosts, slowdown, limit, limit_s, shared]
const [ID, PROFILE, START, FINISH, STATE, HOSTS, SLOW, LIMIT, LIMIT_S, SHARED] = tasks.length ? tasks[0].keys() : [];
for (const t of tasks) {
  for (const c of [PROFILE, STATE, LIMIT]) if (t[c] !== null) t[c] = data.words[t[c]];
  let last = 0;
  t[HOSTS] = t[HOSTS].map((step) => last += step);
}
const end = data.end || 1;
const [UNIT, UNIT_NAME] = end > 4 * 86400 ? [86400, "d"] : end > 4 * 3600 ? [3600, "h"] : end >= 1 ? [1, "s"] : end >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
$("tasks-title").textContent = data.table && data.table.title ? data.table.title : `${data.what[0].toUpperCase()}${data.what.slice(1)}s`;
$("tasks-part").hidden = !tasks.length && !data.table;
$("facts-part").hidden = !data.facts.length;
const until = (t) => t[FINISH] === null ? end : t[FINISH];

function add(parent, tag, text, attributes) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  Object.assign(node, attributes || {});
  parent.appendChild(node);
  return node;
}
function later(action, ms) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(action, ms); };
}
function sized(canvas, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.parentElement.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.max(width * ratio, 1);
  canvas.height = Math.max(height * ratio, 1);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return [pen, width];
}
function ticks(from, to, most) {
  const rough = (to - from) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/* What lies behind the date at which a run was stopped: a hatched strip at the right end of the time. */
const STRIP = data.stopped ? 14 : 0;
function hatch(pen, x, top, high) {
  if (!STRIP) return;
  pen.save(); pen.beginPath(); pen.rect(x, top, STRIP, high); pen.clip();
  pen.fillStyle = "#f6f8fa"; pen.fillRect(x, top, STRIP, high);
  pen.strokeStyle = "#8c959f"; pen.lineWidth = 1; pen.beginPath();
  for (let y = top - STRIP; y < top + high + STRIP; y += 6) { pen.moveTo(x, y + STRIP); pen.lineTo(x + STRIP, y); }
  pen.stroke(); pen.restore();
}
$("stopped").hidden = !data.stopped;
if (data.stopped) add($("stopped"), "span", data.stopped);

/* Summary */
for (const [name, value, about] of data.cards) {
  const card = add($("cards"), "div", name, {className: value.length > 16 ? "card wide" : "card"});
  add(card, "b", value);
  if (about) add(card, "small", about);
}
for (const [name, value] of data.facts) { add($("facts"), "dt", name); add($("facts"), "dd", value); }
for (const text of data.warnings) add($("warnings"), "li", text);
$("warnings-part").hidden = !data.warnings.length;

/* Gantt: tasks that are on a host at once lie in lanes of its row; each rank has a row of its own. */
const onHost = data.hosts.map(() => []);
tasks.forEach((t, k) => { if (t[START] !== null) for (const h of t[HOSTS]) onHost[h].push(k); });
const ofRanks = data.what === "rank", names = ofRanks ? tasks.map((t) => t[ID]) : data.hosts;
const rows = ofRanks ? tasks.map((_, k) => [k]) : onHost;
const timeline = data.timeline ? rankTimeline(data.timeline) : null;
$("gantt-part").hidden = data.what === "run";
if (timeline) for (const [name, colour] of timeline.legend) { const item = add($("gantt-legend"), "span", undefined, {className: "key"}); add(item, "i").style.background = colour; add(item, "span", name); }
const lanes = rows.map((members) => {
  members.sort((a, b) => tasks[a][START] - tasks[b][START] || a - b);
  const bars = []; let group = [], ends = [], last = -Infinity;
  const close = () => { for (const [k, lane] of group) bars.push([k, lane, ends.length]); group = []; ends = []; };
  for (const k of members) {
    const t = tasks[k];
    if (t[START] >= last && group.length) { close(); last = -Infinity; }
    let lane = ends.findIndex((e) => e <= t[START]);
    if (lane < 0) lane = ends.length;
    ends[lane] = until(t); last = Math.max(last, until(t)); group.push([k, lane]);
  }
  close();
  return bars;
});
const elided = (name, most) => name.length <= most ? name : `${name.slice(0, Math.ceil(most / 2) - 1)}…${name.slice(-Math.max(Math.floor(most / 2) - 1, 1))}`;
/* A name in so many characters: first goes what all hosts end in, then what they begin with, then the middle. */
const alike = (names, at) => {
  let k = 0;
  while (names.length > 1 && k < names[0].length && names.every((name) => name.length > k + 1 && at(name, k) === at(names[0], k))) k++;
  return k;
};
const ending = alike(names, (name, k) => name[name.length - 1 - k]), beginning = alike(names, (name, k) => name[k]);
function hostLabel(name, most) {
  if (name.length <= most) return name;
  if (ending > 1 && name.length > ending) name = `${name.slice(0, name.length - ending)}…`;
  if (name.length > most && beginning > 1 && name.length > beginning + 1) name = `…${name.slice(beginning)}`;
  return elided(name, most);
}
const LEFT = 104, TOP = 22;
const rowHeight = Math.max(3, Math.min(30, Math.floor(460 / Math.max(rows.length, 1))));
const shownRows = Math.min(rows.length, Math.floor(12000 / rowHeight));
let view = [0, end], chosen = -1;
$("gantt-note").textContent = !rows.length ? `No ${data.what} ran on a host.`
  : ofRanks ? `${rows.length.toLocaleString("en")} ranks on ${data.hosts.length.toLocaleString("en")} hosts. Drag to move, wheel or pinch to zoom, point at a bar for its facts.${timeline && data.timeline.messages.length ? " Lines are messages, from sender to receiver; zoom in where there are too many to draw." : ""}`
  : `${tasks.length.toLocaleString("en")} ${data.what}s on ${rows.length.toLocaleString("en")} hosts. Drag to move, wheel or pinch to zoom, point at a bar for its facts. Those on a host at the same time share the height of its row.`
  + (shownRows < rows.length ? ` Only the first ${shownRows} rows are drawn.` : "");
const said = $("gantt-note").textContent;
const left = (width) => Math.min(LEFT, width * 0.2);
const toX = (time, width) => left(width) + (time - view[0]) / (view[1] - view[0]) * (width - left(width) - 6 - STRIP);
function drawGantt() {
  const [pen, width] = sized($("gantt"), TOP + shownRows * rowHeight + 4);
  const margin = left(width);
  pen.fillStyle = "#57606a"; pen.strokeStyle = "#eaeef2"; pen.textAlign = "center"; pen.textBaseline = "middle";
  for (const time of ticks(view[0] / UNIT, view[1] / UNIT, width / 90)) {
    const x = toX(time * UNIT, width);
    pen.beginPath(); pen.moveTo(x, TOP); pen.lineTo(x, TOP + shownRows * rowHeight); pen.stroke();
    pen.fillText(`${time} ${UNIT_NAME}`, Math.min(Math.max(x, margin + 12), width - 24), 11);
  }
  pen.textAlign = "right";
  const every = Math.ceil(13 / rowHeight);
  for (let h = 0; h < shownRows; h += every) {
    pen.fillText(hostLabel(names[h], Math.floor(margin / 7.5)), margin - 6, TOP + (h + 0.5) * rowHeight);
  }
  pen.save(); pen.beginPath(); pen.rect(margin, TOP, width - margin, shownRows * rowHeight); pen.clip();
  pen.textAlign = "left";
  let drawn = 0, narrow = 0;
  for (let h = 0; h < shownRows; h++) {
    let edge = -1;
    for (const [k, lane, n] of lanes[h]) {
      const t = tasks[k];
      if (until(t) < view[0] || t[START] > view[1]) continue;
      const a = toX(t[START], width), b = toX(until(t), width);
      if (!timeline && b - a < 0.35) narrow++;
      if (b <= edge && k !== chosen) continue;  // hidden behind what is drawn already
      const part = (rowHeight - (rowHeight > 6 ? 2 : 0)) / n;
      const y = TOP + h * rowHeight + (rowHeight > 6 ? 1 : 0) + lane * part;
      if (timeline) timeline.bar(pen, k, view, (time) => toX(time, width), y, part);
      else { pen.fillStyle = COLOURS[k % COLOURS.length]; pen.fillRect(a, y, Math.max(b - a, 0.7), Math.max(part - (part > 5 ? 0.5 : 0), 0.5)); }
      if (k === chosen) { pen.strokeStyle = "#000"; pen.lineWidth = 2; pen.strokeRect(a, y, Math.max(b - a, 1), part); pen.lineWidth = 1; }
      if (n === 1 && b - a < 0.7) edge = a + 0.7;
      if (!ofRanks && part >= 12 && b - a > 7 * t[ID].length) {
        pen.fillStyle = "#0072B2 #D55E00 #009E73".includes(COLOURS[k % COLOURS.length]) ? "#fff" : "#000";
        pen.fillText(t[ID], Math.max(a, margin) + 3, y + part / 2);
      }
      drawn++;
    }
  }
  if (view[1] >= end) hatch(pen, toX(end, width), TOP, shownRows * rowHeight);
  if (timeline) timeline.lines(pen, view, (time) => toX(time, width), (rank) => TOP + (rank + 0.5) * rowHeight);
  pen.restore();
  $("range").textContent = `${date(view[0])} s to ${date(view[1])} s`;
  $("gantt").dataset.drawn = drawn;
  $("gantt-note").textContent = said + (narrow ? ` ${narrow.toLocaleString("en")} bars are too short for this scale and drawn wider than they are: zoom in.` : "");
}
const redraw = (() => { let asked = false; return () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; drawGantt(); }); } }; })();
function zoom(factor, at) {
  const centre = at === undefined ? (view[0] + view[1]) / 2 : at;
  const span = Math.min(Math.max((view[1] - view[0]) * factor, end * 1e-9), end);
  const part = (centre - view[0]) / (view[1] - view[0]);
  move(centre - part * span, span);
}
function move(from, span) {
  const start = Math.min(Math.max(from, 0), Math.max(end - span, 0));
  view = [start, start + span];
  redraw();
}
const pan = (part) => move(view[0] + part * (view[1] - view[0]), view[1] - view[0]);
const all = () => { view = [0, end]; redraw(); };
$("zoom-in").onclick = () => zoom(0.5); $("zoom-out").onclick = () => zoom(2);
$("left").onclick = () => pan(-0.3); $("right").onclick = () => pan(0.3); $("zoom-all").onclick = all;
$("gantt").addEventListener("keydown", (event) => {
  const action = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "0": all}[event.key];
  if (action) { event.preventDefault(); action(); }
});
const timeAt = (event) => {
  const box = $("gantt").getBoundingClientRect(), margin = left(box.width);
  return view[0] + (event.clientX - box.left - margin) / (box.width - margin - 6 - STRIP) * (view[1] - view[0]);
};
$("gantt").addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event)); }, {passive: false});
function taskAt(event) {
  const box = $("gantt").getBoundingClientRect(), y = event.clientY - box.top - TOP;
  const h = Math.floor(y / rowHeight), time = timeAt(event);
  if (h < 0 || h >= shownRows) return -1;
  const slack = (view[1] - view[0]) / box.width;
  const here = lanes[h].filter(([k]) => tasks[k][START] - slack <= time && time <= until(tasks[k]) + slack);
  const hit = here.find(([, lane, n]) => Math.floor((y - h * rowHeight) / rowHeight * n) === lane) || here[0];
  return hit ? hit[0] : -1;
}
function describe(k, time) {
  const t = tasks[k], lines = [`${data.what} ${t[ID]}${t[PROFILE] ? ` (${t[PROFILE]})` : ""}: ${t[STATE]}`,
    `from ${date(t[START])} s to ${date(until(t))} s (${seconds(until(t) - t[START])})`, `${t[HOSTS].length} hosts`];
  const now = timeline && time !== undefined ? timeline.at(k, time) : null;
  if (now) lines.push(`${now[0]} from ${date(now[1])} s to ${date(now[2])} s (${span(now[2] - now[1])})`);
  if (t[SLOW] !== null) lines.push(`contention slowdown ${number(t[SLOW])}`);
  if (t[LIMIT]) lines.push(`mostly limited by ${t[LIMIT]} (${seconds(t[LIMIT_S])})`);
  if (t[SHARED]) lines.push(`shared with ${t[SHARED]}`);
  return lines.join("\n");
}
function tip(event, text) {
  const box = $("tip");
  box.style.display = text ? "block" : "none";
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 6), 4)}px`;
  box.style.top = `${Math.max(Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 6), 4)}px`;
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip(event, ""); });
const pointers = new Map();
$("gantt").addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); $("gantt").setPointerCapture(event.pointerId); });
for (const name of ["pointerup", "pointercancel"]) $("gantt").addEventListener(name, (event) => pointers.delete(event.pointerId));
$("gantt").addEventListener("pointerleave", (event) => tip(event, ""));
$("gantt").addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (before && pointers.size === 2) {
    const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
    const was = Math.abs(before.clientX - other.clientX), is = Math.abs(event.clientX - other.clientX);
    if (was > 5 && is > 5) zoom(was / is, timeAt(other));
  } else if (before) {
    const box = $("gantt").getBoundingClientRect();
    pan((before.clientX - event.clientX) / (box.width - left(box.width) - 6 - STRIP));
  }
  if (before) pointers.set(event.pointerId, event);
  const k = taskAt(event);
  tip(event, k >= 0 ? describe(k, timeAt(event)) : "");
});
$("gantt").addEventListener("click", (event) => choose(taskAt(event)));
/* Marks a task, and lists the spells in which one thing limited it. */
function choose(k) {
  chosen = k;
  redraw();
  $("spells-part").hidden = k < 0 || !data.spells;
  if ($("spells-part").hidden) return;
  const spells = data.spells.tasks[k], node = $("spells"), whole = data.spells.kept;
  $("spells-title").textContent = `${data.what} ${tasks[k][ID]}: what limited it, spell by spell`;
  $("spells-note").textContent = spells.length ? whole && spells.length >= whole ? `The ${whole} longest spells; all are in bottlenecks.csv.` : "" : "It never ran.";
  node.textContent = "";
  const head = add(add(node, "thead"), "tr"), body = add(node, "tbody");
  ["from (s)", "to (s)", "for (s)", "limited by", "others there", "shared with"].forEach((text, c) => add(head, "th", text, {scope: "col", className: c === 3 || c === 5 ? "" : "number"}));
  for (const [limit, from, to, sharers, who] of spells) {
    const row = add(body, "tr");
    for (const text of [date(from), date(to), number(to - from)]) add(row, "td", text, {className: "number"});
    add(row, "td", data.words[limit]);
    add(row, "td", sharers ? sharers.toLocaleString("en") : "", {className: "number"});
    add(row, "td", data.words[who], {className: "wide"});
  }
}
function show(k) {
  choose(k);
  const t = tasks[k];
  if (t[START] !== null) { const span = Math.min(Math.max(until(t) - t[START], end * 1e-9) * 2, end); move((t[START] + until(t)) / 2 - span / 2, span); }
  if (t[HOSTS].length) $("gantt-scroll").scrollTop = Math.max((ofRanks ? k : Math.min(...t[HOSTS])) * rowHeight - 40, 0);
  $("gantt-title").scrollIntoView();
  $("gantt").focus({preventScroll: true});
}

/* The platform */
const MOST_USERS = 20;
const taskNumber = new Map(tasks.map((t, k) => [t[ID], k]));
const amount = (bytes) => { const k = Math.min(Math.max(Math.floor(Math.log10(bytes || 1) / 3), 0), 5); return `${number(bytes / 1000 ** k)} ${["B", "kB", "MB", "GB", "TB", "PB"][k]}`; };
let places = null;
/* Picks the next in the list of resources, most used first, or the one before. */
function stepUse(by) {
  const list = $("use-select"), count = list.options.length;
  if (!count) return;
  list.selectedIndex = (list.selectedIndex + by + count) % count;
  drawUse();
}
function pickUse(kind, name, halves) {
  const found = halves.concat(name).map((half) => uses.findIndex((use) => use[1] === kind && use[0] === half)).filter((k) => k >= 0);
  if (!found.length) { $("users-note").textContent = `${kind} ${name} is not among the most used ones, which are listed here.`; return; }
  $("use-search").value = "";
  fillUses(found[0]);
}
if (typeof data.topology === "string") { $("topology-note").textContent = data.topology; $("topology-note").hidden = !data.topology; }
else {
  $("topology-part").hidden = false;
  $("topology-key").style.background = `linear-gradient(to right, ${data.topology.heat.join(",")})`;
  $("topology-unused").style.background = data.topology.unused[0];
  places = topology(data.topology, $("topology"), {sized, tip, number, picked: pickUse, stepped: stepUse});
  $("topology-colour").addEventListener("change", () => places.colour($("topology-colour").value));
  $("topology-in").onclick = () => places.zoom(1.5); $("topology-out").onclick = () => places.zoom(1 / 1.5); $("topology-all").onclick = places.all;
}

/* Use of one resource */
const uses = data.uses;  // [name, kind, mean %, [per mille, ...]]
$("use-part").hidden = !uses.length;
$("use-note").textContent = data.use_note;
function fillUses(chosenUse) {
  const wanted = $("use-search").value.toLowerCase();
  $("use-select").textContent = "";
  uses.forEach(([name, kind, mean], k) => { if (`${kind} ${name}`.toLowerCase().includes(wanted)) add($("use-select"), "option", `${kind} ${name}: ${number(mean)} % on average`, {value: k}); });
  if (chosenUse !== undefined) $("use-select").value = chosenUse;
  drawUse();
}
/* [task, start, end, part of what was sent] of those that used a resource, most first, and how many there were. */
function usersOf(kind, name) {
  if (kind === "host") {
    const h = data.hosts.indexOf(name), on = h < 0 ? [] : onHost[h];
    const found = on.map((k) => [tasks[k][ID], tasks[k][START], until(tasks[k])]).sort((a, b) => (b[2] - b[1]) - (a[2] - a[1]));
    return [found.slice(0, MOST_USERS), found.length];
  }
  const known = places && data.topology.users[name];
  if (!known) return [[], 0];
  const named = known[2].map(([user, from, to, bytes]) => [typeof user === "number" ? tasks[user][ID] : user, from * data.topology.tick, to * data.topology.tick, bytes]);
  return [named, known[1]];
}
function drawUse() {
  const use = uses[$("use-select").value];
  const [users, count] = use ? usersOf(use[1], use[0]) : [[], 0];
  const [pen, width] = sized($("use"), 180 + 16 * users.length);
  $("users-note").textContent = "";
  if (!use) { pen.fillText("no resource has such a name", 10, 30); return; }
  const bottom = 156, high = 140, margin = users.length ? Math.min(110, width * 0.25) : 44, wide = width - margin - (users.length && use[1] === "link" ? 78 : 8) - STRIP, parts = use[3];
  pen.textAlign = "right"; pen.textBaseline = "middle"; pen.strokeStyle = "#eaeef2"; pen.fillStyle = "#57606a";
  const most = parts.reduce((a, b) => Math.max(a, b), 0) / 10, top = most > 20 ? 100 : [1, 2, 5, 10, 20].find((level) => most <= level);
  for (const level of [0, top / 2, top]) {
    const y = bottom - high * level / top;
    pen.beginPath(); pen.moveTo(margin, y); pen.lineTo(margin + wide, y); pen.stroke(); pen.fillText(`${level} %`, margin - 5, y);
  }
  pen.textAlign = "center";
  for (const time of ticks(0, end / UNIT, width / 90)) pen.fillText(`${time} ${UNIT_NAME}`, margin + time * UNIT / end * wide, bottom + 14);
  pen.fillStyle = use[1] === "host" ? "#0072B2" : "#D55E00";
  const scale = data.use_width / end * wide;
  pen.save(); pen.beginPath(); pen.rect(margin, 0, wide, 180); pen.clip();
  parts.forEach((part, k) => { if (part) { const h = high * Math.min(part / 10 / top, 1); const x = Math.floor(margin + k * scale); pen.fillRect(x, bottom - h, Math.ceil(margin + (k + 1) * scale) - x, h); } });
  pen.restore();
  hatch(pen, margin + wide, bottom - high, high);
  users.forEach(([id, from, to, bytes], k) => {
    const y = 188 + 16 * k, a = margin + from / end * wide;
    pen.fillStyle = COLOURS[(taskNumber.get(id) ?? k) % COLOURS.length];
    pen.fillRect(a, y - 5, Math.max(to / end * wide + margin - a, 1), 11);
    pen.fillStyle = "#57606a"; pen.textAlign = "right";
    pen.fillText(elided(id, Math.floor((margin - 10) / 7)), margin - 5, y);
    if (bytes !== undefined) pen.fillText(amount(bytes), width - 4, y);
  });
  if (top < 100) $("users-note").textContent = `This is never used more than ${top} %, where the axis ends. `;
  if (users.length) $("users-note").textContent += `Below: ${ofRanks && use[1] === "link" ? "pairs of ranks (3>5: rank 3 sends to rank 5)" : `${data.what}s`} that used ${use[1] === "host" ? "it" : "it, with what they sent,"} from their first to their last use` + (count > users.length ? `; the ${users.length} that used it most of ${count.toLocaleString("en")}.` : ".");
  if (places) places.pick(use[1], use[1] === "link" && data.topology.users[use[0]] ? data.topology.users[use[0]][0] : use[0]);
}
$("use-search").addEventListener("input", later(() => fillUses(), 120));
$("use-select").addEventListener("change", drawUse);

/* Tables: sorted by a click on a head, filtered by the search, the first rows shown */
const MOST = 200;
function table(id, allHeads, allValues, allTexts, order, button, dates = new Set()) {
  // Columns in which nothing stands are left out.
  const kept = allHeads.map((_, c) => c).filter((c) => c === 0 || allValues.some((row) => row[c] !== null && row[c] !== ""));
  const heads = kept.map((c) => allHeads[c]), values = allValues.map((row) => kept.map((c) => row[c]));
  const renumbered = (columns) => new Set([...columns].filter((c) => kept.includes(c)).map((c) => kept.indexOf(c)));
  const texts = renumbered(allTexts), asDates = renumbered(dates);
  // Without an order rows stand as they come.
  let column = order ? Math.max(kept.indexOf(order[0]), 0) : -1, down = order ? order[1] : true;
  const node = $(id), head = add(add(node, "thead"), "tr"), body = add(node, "tbody");
  let wanted = null;  // [row number => whether it is shown, of what]; null: all
  const clear = add($(`${id}-count`).parentElement, "button", "Show all", {type: "button", hidden: true});
  clear.onclick = () => only(null);
  const haystack = values.map((row) => row.filter((_, c) => texts.has(c)).join(" ").toLowerCase());
  heads.forEach((name, c) => {
    const cell = add(head, "th", undefined, {className: texts.has(c) ? "" : "number", scope: "col"});
    add(cell, "button", name, {type: "button"}).onclick = () => { down = column === c ? !down : !texts.has(c); column = c; fill(); };
  });
  function fill() {
    const words = $(`${id}-search`).value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (let k = 0; k < values.length; k++) if ((!wanted || wanted[0](k)) && words.every((w) => haystack[k].includes(w))) found.push(k);
    const sign = down ? -1 : 1;
    if (column >= 0) found.sort((a, b) => {
      const x = values[a][column], y = values[b][column];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y) || a - b;
    });
    body.textContent = "";
    const rows = document.createDocumentFragment();
    for (const k of found.slice(0, MOST)) {
      const row = add(rows, "tr");
      values[k].forEach((value, c) => {
        const cell = add(row, "td", undefined, {className: texts.has(c) ? (c === heads.length - 1 ? "wide" : "") : "number"});
        if (button && c === 0) add(cell, "button", value, {type: "button", title: id === "tasks" ? "show in the chart" : "list below"}).onclick = () => button(k);
        else cell.textContent = typeof value !== "number" ? value : asDates.has(c) ? date(value) : number(value);
      });
    }
    body.appendChild(rows);
    [...head.children].forEach((cell, c) => cell.setAttribute("aria-sort", c !== column ? "none" : down ? "descending" : "ascending"));
    $(`${id}-count`).textContent = `${found.length.toLocaleString("en")} of ${values.length.toLocaleString("en")}` + (wanted ? `, ${wanted[1]}` : "") + (found.length > MOST ? `; the first ${MOST} are shown` : "");
    clear.hidden = !wanted;
  }
  /* Shows only the rows for which a function of their number holds, and says of what they are. */
  function only(chosen) { wanted = chosen; fill(); if (chosen) $(`${id}-part`).scrollIntoView(); }
  $(`${id}-search`).addEventListener("input", later(fill, 120));
  fill();
  return only;
}
$("limits-part").hidden = !data.limits.length;
const limited = ofRanks ? "computations and messages" : `${data.what}s`;
$("limits-note").textContent = `For each limit: how long it held ${limited} back, summed over them, how much of that in spells during which others used it too, and how many it held back. What nobody shared is no bottleneck.` + (data.spells ? ` A click lists its ${data.what}s.` : "");
const limitName = ([kind, resource]) => `${kind} ${resource}`.trim();
table("limits", ["limit", "time (s)", "of it in shared spells (s)", limited, "mean use (%)"], data.limits.map((row) => [limitName(row), ...row.slice(2)]), new Set([0]), null,
  data.spells ? (k) => { const members = new Set(data.spells.of[k]); onlyTasks([(task) => members.has(task), `limited by ${limitName(data.limits[k])}`]); } : null);
// Columns that only some batches have stand behind the first three; their first sorts.
const more = data.columns || {heads: [], texts: [], rows: []}, beside = more.heads.length;
const onlyTasks = data.table ? table("tasks", data.table.heads, data.table.rows, new Set(data.table.texts), data.table.order, data.what === "run" ? null : show)
  : table("tasks", [data.what, "profile", "state", ...more.heads, "start (s)", "time (s)", "contention slowdown", "limited mostly by", "for (s)", "shared with"],
  tasks.map((t, k) => [t[ID], t[PROFILE] || "", t[STATE], ...(beside ? more.rows[k] : []), t[START], t[START] === null ? null : until(t) - t[START], t[SLOW], t[LIMIT] || "", t[LIMIT_S], t[SHARED] || ""]),
  new Set([0, 1, 2, ...more.texts.map((c) => c + 3), beside + 6, beside + 8]), [beside ? 3 : data.has_slowdowns ? 5 : 4, true], show, new Set([beside + 3]));
$("tasks-search").placeholder = data.table && data.table.placeholder ? data.table.placeholder : data.what === "run" ? "search runs: levels, status" : data.table ? "search ranks: rank, host" : beside ? "search jobs: id, state, user, partition" : `search ${data.what}s: id, profile, state, limit`;

/* Of two runs: what became of tasks in a, and in b; a click lists those of a cell */
if (data.outcomes) {
  const {what, names: became, rows: counts, note} = data.outcomes, node = $("outcomes");
  $("outcomes-part").hidden = false;
  $("outcomes-note").textContent = note;
  const head = add(add(node, "thead"), "tr"), body = add(node, "tbody");
  for (const text of [what, ...became.map((each) => `${each} in b`)]) add(head, "th", text, {scope: "col", className: text === what ? "" : "number"});
  counts.forEach((row, a) => {
    const line = add(body, "tr");
    add(line, "th", `${became[a]} in a`, {scope: "row"});
    row.forEach((count, c) => {
      const cell = add(line, "td", undefined, {className: "number"}), k = became.length * a + c;
      if (data.table.of.includes(k)) add(cell, "button", count.toLocaleString("en"), {type: "button"}).onclick = () => onlyTasks([(row) => data.table.of[row] === k, `${became[a]} in a, ${became[c]} in b`]);
      else cell.textContent = count.toLocaleString("en");
    });
  });
}

/* The load of a machine: [hosts in use: mean, most; hosts waited for, mean; jobs that wait, most] */
$("load-part").hidden = !data.load;
if (data.load) $("load-note").textContent = `Above: hosts in use (blue: mean, pale: most in each cell of ${data.load.cell})${data.load.hosts ? `, dashed: all ${data.load.hosts.toLocaleString("en")}` : ""}. Below: hosts that waiting jobs ask for (orange, mean) and how many jobs wait (red line, most).`;
function drawLoad() {
  if (!data.load) return;
  const [pen, width] = sized($("load"), 330), margin = 56, wide = width - margin - 56 - STRIP, [mean, most, asked, jobs] = data.load.columns;
  const step = wide / mean.length;
  const panel = (top, high, fills, line, dashed) => {
    const tallest = Math.max(1, dashed || 0, ...fills.flatMap(([values]) => values));
    const y = (value, whole) => top + high * (1 - value / whole);
    pen.strokeStyle = "#eaeef2"; pen.fillStyle = "#57606a"; pen.textAlign = "right"; pen.textBaseline = "middle";
    for (const value of ticks(0, tallest, 3)) { pen.beginPath(); pen.moveTo(margin, y(value, tallest)); pen.lineTo(margin + wide, y(value, tallest)); pen.stroke(); pen.fillText(value.toLocaleString("en"), margin - 6, y(value, tallest)); }
    for (const [values, colour] of fills) { pen.fillStyle = colour; values.forEach((value, k) => { if (value) { const x = Math.floor(margin + k * step); pen.fillRect(x, y(value, tallest), Math.ceil(margin + (k + 1) * step) - x, top + high - y(value, tallest)); } }); }
    if (dashed) { pen.strokeStyle = "#1b1f24"; pen.setLineDash([5, 4]); pen.beginPath(); pen.moveTo(margin, y(dashed, tallest)); pen.lineTo(margin + wide, y(dashed, tallest)); pen.stroke(); pen.setLineDash([]); }
    hatch(pen, margin + wide, top, high);
    if (!line) return;
    const whole = Math.max(1, ...line);
    pen.strokeStyle = "#D55E00"; pen.beginPath();
    line.forEach((value, k) => { pen.lineTo(margin + k * step, y(value, whole)); pen.lineTo(margin + (k + 1) * step, y(value, whole)); });
    pen.stroke();
    pen.fillStyle = "#D55E00"; pen.textAlign = "left";
    for (const value of ticks(0, whole, 3)) pen.fillText(value.toLocaleString("en"), margin + wide + STRIP + 6, y(value, whole));
  };
  panel(10, 130, [[most, "#56B4E9"], [mean, "#0072B2"]], null, data.load.hosts);
  panel(165, 130, [[asked, "#E69F00"]], jobs);
  pen.fillStyle = "#57606a"; pen.textAlign = "center";
  for (const time of ticks(0, data.load.end / UNIT, width / 90)) pen.fillText(`${time} ${UNIT_NAME}`, margin + time * UNIT / data.load.end * wide, 310);
}

/* Slowdowns */
const slow = tasks.map((t) => t[SLOW]).filter((x) => x !== null).sort((a, b) => a - b);
$("slow-part").hidden = !slow.length;
function drawSlow() {
  if (!slow.length) return;
  const quantile = (q) => number(slow[Math.ceil(q * slow.length) - 1]);
  $("slow-note").textContent = `Time taken over time alone on the same hosts. Half of the ${data.what}s: at most ${quantile(0.5)}; 95 %: at most ${quantile(0.95)}; the most: ${quantile(1)}.`;
  const [pen, width] = sized($("slow"), 190), from = Math.min(1, slow[0]), to = Math.max(slow[slow.length - 1], from + 0.1);
  const bins = new Array(40).fill(0), margin = 50, wide = width - margin - 10, bottom = 150, high = 130;
  // Most jobs are hardly slowed: a few that are would squeeze them into one bar.
  const log = from > 0 && to > 20 * from;
  const place = log ? (x) => Math.log(x / from) / Math.log(to / from) : (x) => (x - from) / (to - from);
  for (const x of slow) bins[Math.min(Math.floor(place(x) * 40), 39)]++;
  const most = Math.max(...bins), few = Math.min(...bins.filter((n) => n));
  // Counts that span decades are drawn by their logarithm, from 1 on, which is half a decade high.
  const decades = most > 100 * few, tall = decades ? (n) => high * (Math.log10(n) + 0.5) / (Math.log10(most) + 0.5) : (n) => high * n / most;
  pen.textAlign = "right"; pen.textBaseline = "middle"; pen.strokeStyle = "#eaeef2"; pen.fillStyle = "#57606a";
  const levels = decades ? ticks(0, Math.log10(most), 4).filter(Number.isInteger).map((p) => 10 ** p) : [most];
  for (const n of levels) { pen.fillText(n.toLocaleString("en"), margin - 6, bottom - tall(n)); pen.beginPath(); pen.moveTo(margin, bottom - tall(n)); pen.lineTo(margin + wide, bottom - tall(n)); pen.stroke(); }
  pen.fillStyle = "#009E73";
  bins.forEach((n, k) => { if (n) { const h = Math.max(tall(n), 1); pen.fillRect(margin + k * wide / 40, bottom - h, wide / 40 - 1, h); } });
  pen.fillStyle = "#57606a"; pen.textAlign = "center"; pen.textBaseline = "middle";
  const marks = log ? ticks(Math.log10(from), Math.log10(to), width / 90).filter(Number.isInteger).map((p) => 10 ** p) : ticks(from, to, width / 90);
  for (const x of marks) pen.fillText(String(x), margin + place(x) * wide, bottom + 13);
  pen.fillText("contention slowdown", margin + wide / 2, bottom + 31);
  pen.textAlign = "right"; pen.fillText("0", margin - 6, bottom);
  if (decades) { pen.save(); pen.translate(8, bottom - high / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center"; pen.fillText(`${data.what}s, log scale`, 0, 0); pen.restore(); }
}
function drawAll() { drawGantt(); if (places) places.resized(); if (uses.length) drawUse(); drawLoad(); drawSlow(); }
if (uses.length) fillUses();
drawAll();
window.addEventListener("resize", later(drawAll, 100));
document.body.dataset.ready = "yes";
})();
