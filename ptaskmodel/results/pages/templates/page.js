"use strict";
(() => {
const data = JSON.parse($("data").textContent);
const tasks = data.tasks, ofRanks = data.what === "rank", end = data.end || 1;
for (const t of tasks) for (const c of [PROFILE, STATE, LIMIT, USER]) if (t[c] !== null) t[c] = data.words[t[c]];
const date = (x) => numbers.date(x, end, data.epoch), one = data.what, many = `${data.what}s`;
const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
/* The name of a link by its place, where it has one. */
const placed = (name) => data.places[name] || name;
const limitName = (text) => { const at = text.indexOf(" "); return at < 0 ? text : `${text.slice(0, at)} ${placed(text.slice(at + 1))}`; };

/* Answer, warnings, inputs */
$("stopped").hidden = !data.stopped;
if (data.stopped) add($("stopped"), "span", data.stopped);
for (const [name, value, about] of data.cards) {
  const box = add($("numbers"), "div", name);
  add(box, "b", value);
  if (about) add(box, "small", about);
}
for (const text of data.warnings) add($("warnings"), "li", text);
$("warnings-part").hidden = !data.warnings.length;
for (const [name, value] of data.facts) { add($("facts"), "dt", name); add($("facts"), "dd", value); }
$("facts-part").hidden = !data.facts.length;

/* Names of hosts: first goes what all end in, then what they begin with, then the middle. */
const rowNames = ofRanks ? tasks.map((t) => t[ID]) : data.hosts;
const alike = (names, at) => { let k = 0; while (names.length > 1 && k < names[0].length && names.every((name) => name.length > k + 1 && at(name, k) === at(names[0], k))) k++; return k; };
const ending = alike(rowNames, (name, k) => name[name.length - 1 - k]), beginning = alike(rowNames, (name, k) => name[k]);
function hostLabel(name, most) {
  if (name.length <= most) return name;
  if (ending > 1 && name.length > ending) name = `${name.slice(0, name.length - ending)}…`;
  if (name.length > most && beginning > 1 && name.length > beginning + 1) name = `…${name.slice(beginning)}`;
  return elided(name, most);
}

/* A choice of tasks that panel, tables and platform show: [numbers, of what]; null: all. */
let filter = null;
function choose(members, text, links) {
  filter = members ? [members, text] : null;
  $("filter").hidden = !filter;
  if (filter) $("filter").firstElementChild.textContent = `Shown: ${numbers.count(members.size, one)}, ${text}`;
  if (onlyTasks) onlyTasks(filter && [(k) => members.has(k), text]);
  if (panel) panel.again();
  if (places) places.hold(filter ? links || linksOf(members) : null);
}
$("filter").lastElementChild.onclick = () => choose(null);

/* The time panel */
const timeline = data.timeline ? rankTimeline(data.timeline) : null;
const drawable = tasks.length && rowNames.length;
$("panel-part").hidden = one === "run" || !tasks.length;
function describe(k, time) {
  const t = tasks[k], to = panel ? panel.until(t) : t[FINISH];
  const lines = [`${one} ${t[ID]}${t[PROFILE] ? ` (${t[PROFILE]})` : ""}: ${t[STATE]}`, `from ${date(t[START])} to ${date(to)} (${numbers.duration(to - t[START])}; ${t[START]} s to ${to} s)`];
  const now = timeline && time !== undefined ? timeline.at(k, time) : null;
  if (panel) lines.push(numbers.count(panel.hostsOf[k], "host"));
  if (now) lines.push(`${now[0]} from ${numbers.duration(now[1])} to ${numbers.duration(now[2])} (${numbers.duration(now[2] - now[1])})`);
  if (t[USER]) lines.push(`user ${t[USER]}`);
  if (t[WAITED] !== null) lines.push(`waited ${numbers.duration(t[WAITED])}`);
  if (t[SLOW] !== null) lines.push(`contention slowdown ${numbers.number(t[SLOW])}`);
  if (t[LIMIT]) lines.push(`mostly limited by ${limitName(t[LIMIT])} (${numbers.duration(t[LIMIT_S])})`);
  if (t[SHARED]) lines.push(`shared with ${elided(t[SHARED], 200)}`);
  return lines.join("\n");
}
const panel = drawable && one !== "run" ? timePanel(data, {timeline, hostLabel, describe, filter: () => filter, picked, pickedLevel}) : null;
if (panel) {
  $("panel-note").textContent = data.panel_says + (data.cut && ` Drawn: ${data.cut}.`);
  $("panel").setAttribute("aria-label", `${data.panel_says} Keys: plus, minus, arrows, 0. The table of ${many} below has each.`);
} else { $("panel-note").textContent = `No ${one} ran on a host.`; $("panel").hidden = true; document.querySelectorAll("#panel-part .bar").forEach((bar) => { bar.hidden = true; }); }
/* Marks a task, and lists the spells in which one thing limited it. */
function picked(k) {
  panel.choose(k);
  if (places) places.hold(k < 0 ? null : linksOf(new Set([k])));
  $("spells-part").hidden = k < 0 || !data.spells;
  if ($("spells-part").hidden) return;
  const spells = data.spells.tasks[k], whole = data.spells.kept;
  $("spells-title").textContent = `${one} ${elided(tasks[k][ID], 60)}: what limited it, spell by spell`;
  $("spells-note").textContent = spells.length ? whole && spells.length >= whole ? `The ${whole} longest spells; all are in bottlenecks.csv.` : "" : "It never ran.";
  table($("spells"), {caption: "Spells in which one thing limited it", heads: ["limited by", "from", "to", "for (s)", "others there", "shared with"], kinds: ["text", "date", "date", "number", "count", "text"],
    rows: spells.map(([limit, from, to, sharers, who]) => [limitName(data.words[limit]), from, to, to - from, sharers || null, data.words[who]]), order: null, date, end, key: [3, 5]});
}
function show(k) {
  if (!panel) return;
  picked(k);
  panel.show(k);
  $("panel-title").scrollIntoView();
  $("panel").focus({preventScroll: true});
}
/* Links of a level: what they limited. */
function pickedLevel(track) {
  const names = new Set(track.members);
  $("use-search").value = ""; fillUses(undefined, names);
  $("use-part").scrollIntoView();
}

/* The platform, and the use of one resource */
const MOST_USERS = 20, uses = data.uses;  // [name, kind, mean %, [per mille, ...]]
const taskNumber = new Map(tasks.map((t, k) => [t[ID], k]));
let places = null, level = null;
const usersOfLink = (name) => typeof data.topology === "object" && data.topology.users[name] ? data.topology.users[name][2] : [];
const numberOf = (user) => typeof user === "number" ? user : taskNumber.get(user);
function linksOf(members) {
  if (typeof data.topology !== "object") return new Set();
  return new Set(Object.keys(data.topology.users).filter((name) => usersOfLink(name).some(([user]) => members.has(numberOf(user)))));
}
function stepUse(by) {
  const list = $("use-select"), count = list.options.length;
  if (!count) return;
  list.selectedIndex = (list.selectedIndex + by + count) % count;
  drawUse();
}
function pickUse(kind, name, halves) {
  const found = halves.concat(name).map((half) => uses.findIndex((use) => use[1] === kind && use[0] === half)).filter((k) => k >= 0);
  if (!found.length) { $("users-note").textContent = `${kind} ${placed(name)} is not among the most used ones, which are listed here.`; return; }
  $("use-search").value = "";
  fillUses(found[0]);
}
if (typeof data.topology === "string") { $("topology-note").textContent = data.topology; $("topology-note").hidden = !data.topology; }
else {
  $("topology-part").hidden = false;
  $("topology-says").textContent = data.topology.says;
  $("topology").setAttribute("aria-label", `${data.topology.says} Keys: plus, minus, arrows, 0; Enter picks the next most used, Shift and Enter the one before.`);
  places = topology(data, $("topology"), {placed, picked: pickUse, stepped: stepUse});
  $("topology-colour").addEventListener("change", () => places.colour($("topology-colour").value));
  $("topology-in").onclick = () => places.zoom(1.5); $("topology-out").onclick = () => places.zoom(1 / 1.5); $("topology-all").onclick = places.all;
  const now = $("now"), cells = data.topology.moments;
  let playing = 0;
  now.max = Math.max(cells - 1, 0);
  const go = () => { $("topology-colour").value = "now"; $("now-text").textContent = date((Number(now.value) + 0.5) * end / cells); places.now(Number(now.value)); };
  now.addEventListener("input", go);
  $("play").onclick = () => {
    if (playing) { clearInterval(playing); playing = 0; $("play").textContent = "▶"; return; }
    $("play").textContent = "❚❚";
    playing = setInterval(() => { now.value = Number(now.value) >= cells - 1 ? 0 : Number(now.value) + 1; go(); }, 150);
  };
}
$("use-part").hidden = !uses.length;
$("use-note").textContent = data.use_note;
function fillUses(chosenUse, names = null) {
  const wanted = $("use-search").value.toLowerCase();
  level = names;
  $("use-select").textContent = "";
  uses.forEach(([name, kind, mean], k) => { if ((!level || level.has(name)) && `${kind} ${placed(name)} ${name}`.toLowerCase().includes(wanted)) add($("use-select"), "option", `${kind} ${placed(name)}: ${numbers.share(mean / 100)} on average`, {value: k}); });
  if (chosenUse !== undefined) $("use-select").value = chosenUse;
  drawUse();
}
/* [task, start, end, bytes] of those that used a resource, most first, and how many there were. */
function usersOf(kind, name) {
  if (kind === "host") {
    const h = data.hosts.indexOf(name), on = h < 0 || !panel ? [] : tasks.map((_, k) => k).filter((k) => tasks[k][START] !== null && panel.runs[k].some(([from, to]) => from <= h && h < to));
    const found = on.map((k) => [tasks[k][ID], tasks[k][START], panel.until(tasks[k])]).sort((a, b) => (b[2] - b[1]) - (a[2] - a[1]));
    return [found.slice(0, MOST_USERS), found.length];
  }
  const held = typeof data.topology === "object" && data.topology.users[name];
  if (!held) return [[], 0];
  return [held[2].map(([user, from, to, bytes]) => [typeof user === "number" ? tasks[user][ID] : user, from * data.topology.tick, to * data.topology.tick, bytes]), held[1]];
}
function drawUse() {
  const use = uses[$("use-select").value], [users, count] = use ? usersOf(use[1], use[0]) : [[], 0];
  const [pen, width] = sized($("use"), 180 + 16 * users.length);
  $("users-note").textContent = "";
  pen.fillStyle = colour("soft");
  if (!use) { pen.fillText("no resource has such a name", 10, 30); return; }
  const [name, kind, mean, parts] = use, bottom = 156, high = 140, margin = width < 560 ? 84 : 168, wide = width - margin - 8;
  const sends = users.length && kind === "link" ? 64 : 0;
  pen.textBaseline = "middle"; pen.textAlign = "right"; pen.strokeStyle = colour("line");
  for (const mark of [0, 50, 100]) { const y = bottom - high * mark / 100; pen.beginPath(); pen.moveTo(margin, y); pen.lineTo(margin + wide, y); pen.stroke(); pen.fillText(`${mark} %`, margin - 5, y); }
  pen.textAlign = "center";
  for (const [mark, text] of numbers.dates(0, end, wide, end, data.epoch)) { const half = pen.measureText(text).width / 2; pen.fillText(text, Math.min(margin + mark / end * wide, width - half), bottom + 14); }
  pen.fillStyle = colour(kind === "host" ? "use" : "transfer");
  const cell = data.use_width / end * wide;
  parts.forEach((part, k) => { if (part) { const h = high * Math.min(part / 1000, 1), x = Math.floor(margin + k * cell); pen.fillRect(x, bottom - h, Math.min(Math.ceil(margin + (k + 1) * cell), margin + wide) - x, h); } });
  users.forEach(([id, from, to, bytes], k) => {
    const y = 188 + 16 * k, a = margin + from / end * (wide - sends);
    pen.fillStyle = colour("nothing"); pen.fillRect(a, y - 5, Math.max((to - from) / end * (wide - sends), 1), 11);
    pen.fillStyle = colour("soft"); pen.textAlign = "left"; pen.fillText(elided(id, Math.floor((margin - 10) / 7)), 0, y);
    if (bytes !== undefined) { pen.textAlign = "right"; pen.fillText(numbers.bytes(bytes), width - 4, y); }
  });
  const whole = `${kind} ${placed(name)}${placed(name) === name ? "" : ` (${name})`}: used to ${numbers.share(mean / 100)} on average, ${numbers.share(parts.reduce((a, b) => Math.max(a, b), 0) / 1000)} at most.`;
  $("use").setAttribute("aria-label", whole);
  $("users-note").textContent = whole + (users.length ? ` Below: ${ofRanks && kind === "link" ? "pairs of ranks (3>5: rank 3 sends to rank 5)" : many} that used ${kind === "host" ? "it" : "it, with what they sent,"} from their first to their last use` + (count > users.length ? `; the ${users.length} that used it most of ${numbers.number(count)}.` : ".") : "");
  useNumbers();
  if (places) places.pick(kind, kind === "link" && data.topology.users[name] ? data.topology.users[name][0] : name);
}
const useNumbers = asTable($("use-table"), () => {
  const use = uses[$("use-select").value];
  if (!use) return [];
  const [name, kind,, parts] = use, [users] = usersOf(kind, name), spec = {date, end, order: null};
  return [{...spec, caption: `Use of ${kind} ${placed(name)}`, heads: ["from", "mean use"], kinds: ["date", "share"], rows: parts.map((part, k) => [k * data.use_width, part / 1000])},
    {...spec, caption: `Who used ${kind} ${placed(name)} most`, heads: [one, "from", "to", "sent"], kinds: ["text", "date", "date", "bytes"], rows: users}];
});
$("use-search").addEventListener("input", later(() => fillUses(), 120));
$("use-select").addEventListener("change", drawUse);

/* The table of tasks, of ranks, or of runs */
$("tasks-title").textContent = data.table && data.table.title ? data.table.title : capital(many) + (data.cut && `: ${data.cut}`);
$("tasks-part").hidden = !tasks.length && !data.table;
let onlyTasks = null;
if (data.table) {
  const {heads, rows, texts, order, placeholder} = data.table, textual = new Set(texts);
  onlyTasks = table($("tasks"), {caption: $("tasks-title").textContent, quiet: true, same: data.table.same, heads, rows, kinds: data.table.kinds || heads.map((_, c) => textual.has(c) ? "text" : "number"), order, search: placeholder || (one === "run" ? "search runs: levels, status" : "search ranks: rank, host"),
    button: one === "run" ? null : show, signed: data.table.signed, file: data.table.file});
} else if (tasks.length) {
  // Columns that only some batches have stand behind the first three; their first sorts.
  const more = data.columns || {heads: [], texts: [], rows: []}, textual = new Set(more.texts), beside = more.heads.length;
  const heads = [one, "profile", "state", ...more.heads, "user", "start", "time (s)", "waiting (s)", "contention slowdown", "limited mostly by", "for (s)", "shared with"];
  const kinds = ["text", "text", "text", ...more.heads.map((_, c) => textual.has(c) ? "text" : "number"), "text", "date", "number", "number", "number", "text", "number", "text"];
  const rows = tasks.map((t, k) => [t[ID], t[PROFILE] || "", t[STATE], ...(beside ? more.rows[k] : []), beside ? "" : t[USER] || "", t[START], t[START] === null ? null : (t[FINISH] === null ? end : t[FINISH]) - t[START], beside ? null : t[WAITED], t[SLOW], t[LIMIT] ? limitName(t[LIMIT]) : "", t[LIMIT_S], t[SHARED] || ""]);
  const slowed = tasks.some((t) => t[SLOW] !== null), sorts = beside ? 3 : slowed ? 7 : 5;
  onlyTasks = table($("tasks"), {caption: capital(many), quiet: true, heads, kinds, rows, order: [sorts, true], date, end, button: show, key: [2, sorts], same: more.same ? more.same.map((c) => c + 3) : null, signed: more.signed ? [3] : null, file: one === "job" ? "jobs.csv" : "tasks.csv",
    search: beside ? "search jobs: id, state, user, partition" : `search ${many}: id, profile, state, limit`, cleared: () => choose(null)});
}

/* Sections from Python: tables and charts */
for (const node of document.querySelectorAll("[data-table]")) {
  const spec = data.tables[node.dataset.table], {picks} = spec;
  table(node, {...spec, date, end, button: picks && ((k) => choose(new Set(picks[k][0]), picks[k][1], picks[k][2] ? new Set([picks[k][2]]) : null))});
}
for (const node of document.querySelectorAll("[data-chart]")) {
  const spec = data.charts[node.dataset.chart];
  charts[spec.chart](node, {...spec, exact: (value) => spec.unit ? `${numbers.number(value)} ${spec.unit}` : numbers[spec.kind](value), picked: (r, c) => {
    const members = spec.members[r][c];
    choose(new Set(members), c < spec.columns.length - 1 ? `${spec.rows[r]} and ${spec.columns[c]}` : spec.rows[r]);
  }});
}

/* Of two runs: what became of tasks in a, and in b; a click lists those of a cell */
if (data.outcomes) {
  const {what, names, rows, note} = data.outcomes, sums = rows.map((row) => row.reduce((a, b) => a + b, 0));
  $("outcomes-part").hidden = false;
  charts.matrix($("outcomes"), {sentence: note, caption: `${what}: what became of them`, corner: what, rows: names.map((name) => `${name} in a`), columns: [...names.map((name) => `${name} in b`), "sum"], sums: 1, cells: rows.map((row, a) => [...row, sums[a]]), kind: "count",
    exact: (n) => numbers.count(n, one === "run" ? "job" : one), picked: (a, c) => { onlyTasks([(row) => { const k = data.table.of[row]; return Math.floor(k / names.length) === a && (c === names.length || k % names.length === c); }, `${names[a]} in a${c < names.length ? `, ${names[c]} in b` : ""}`]); $("tasks-part").scrollIntoView(); }});
}

/* Words, contents, keys */
const text = $("main").textContent.toLowerCase();
for (const [word, meaning] of Object.entries(WORDS)) if (word.split(", ").some((each) => text.includes(each.toLowerCase()))) { add($("glossary"), "dt", word); add($("glossary"), "dd", meaning); }
const filled = (node) => node.id === "answer" || [...node.querySelectorAll("section")].some((section) => !section.hidden);
const parts = ["answer", "why", "when", "details", "inputs", "words"].map($).filter((node) => node.id === "words" ? $("glossary").children.length : filled(node));
$("words").hidden = !$("glossary").children.length;
const titles = {answer: "Answer", why: "Why", when: "When and where", details: "Details", inputs: "Inputs", words: "Words"};
parts.forEach((node, k) => add($("contents"), "a", `${k + 1} ${titles[node.id]}`, {href: `#${node.id}`}));
keys(document, Object.fromEntries(parts.map((node, k) => [String(k + 1), () => node.scrollIntoView()])));
keys(document, {Escape: (event) => tip(event, "")});

function drawAll() { known = {}; if (places) { $("topology-key").style.background = gradient(); $("topology-unused").style.background = colour("nothing"); } if (panel) panel.redraw(); if (places) places.resized(); if (uses.length) drawUse(); for (const again of drawings) again(); }
if (uses.length) fillUses();
drawAll();
window.addEventListener("resize", later(drawAll, 100));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => { document.documentElement.dataset.paper = "yes"; drawAll(); });
window.addEventListener("afterprint", () => { delete document.documentElement.dataset.paper; drawAll(); });
document.body.dataset.ready = "yes";
})();
