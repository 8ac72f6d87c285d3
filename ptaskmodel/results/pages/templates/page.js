"use strict";
(() => {
/* Of what is not given there is nothing. */
const data = {end: 0, epoch: null, cards: [], facts: [], warnings: [], hosts: [], groups: null, tasks: [], killed: [], words: [], panel_says: "", cut: "", tracks: [], spells: null,
  uses: [], use_width: 1, use_note: "", places: {}, topology: "", timeline: null, table: null, columns: null, stopped: null, ...JSON.parse($("data").textContent)};
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
  if (filter) $("filter").firstElementChild.textContent = `Shown: ${numbers.count(members.size, data.table?.of || one)}, ${text}`;
  if (onlyTasks) onlyTasks(filter && [(k) => members.has(k), text]);
  if (panel) panel.again();
  if (places) hold(members, links);
  if (filter && !panel) $("tasks-part").scrollIntoView();
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
  if (places) hold(k < 0 ? null : new Set([k]));
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
/* Links of a level. */
function pickedLevel({name, members}) {
  const its = new Set(members);
  onlyUses([(k) => its.has(uses[k][0]), name]);
  $("use-part").scrollIntoView();
}

/* The platform, and the use of one resource */
const uses = data.uses;  // [name, kind, mean %, [per mille, ...]]
const taskNumber = new Map(tasks.map((t, k) => [t[ID], k]));
let places = null, onlyUses = null, used = -1;
/* Of links [cable, how many used it, [[user, first use, last use, bytes], ...]]; without a topology of none. */
const linkUsers = data.topology.users || {}, usersOfLink = (name) => linkUsers[name] ? linkUsers[name][2] : [];
const numberOf = (user) => typeof user === "number" ? user : taskNumber.get(user);
const linksOf = (members) => new Set(Object.keys(linkUsers).filter((name) => usersOfLink(name).some(([user]) => members.has(numberOf(user)))));
/* Fades on the platform what none of these tasks used: other hosts; other links where it is known that they sent most over some. */
function hold(members, links) {
  const hosts = members && panel && !ofRanks ? [...members].flatMap((k) => panel.runs(k).flatMap(([from, to]) => data.hosts.slice(from, to))) : [];
  places.hold(members && (links || linksOf(members)), new Set(hosts));
}
/* [task, start, end, bytes] of those that used a resource, most first, and how many there were. */
function usersOf(kind, name) {
  if (kind === "host") {
    const h = data.hosts.indexOf(name), on = h < 0 || !panel ? [] : tasks.map((_, k) => k).filter((k) => tasks[k][START] !== null && panel.runs(k).some(([from, to]) => from <= h && h < to));
    return [on.map((k) => [k, tasks[k][START], panel.until(tasks[k]), null]).sort((a, b) => (b[2] - b[1]) - (a[2] - a[1])), on.length];
  }
  const tick = data.topology.tick;
  return [usersOfLink(name).map(([user, from, to, bytes]) => [user, from * tick, to * tick, bytes]), usersOfLink(name).length ? linkUsers[name][1] : 0];
}
/* A resource as a track of the panel; who used it is shown everywhere, and listed. */
function pickUse(k) {
  const [name, kind, mean, parts] = uses[used = k], text = `${kind} ${placed(name)}`, [users, count] = usersOf(kind, name);
  const members = new Set(users.map(([user]) => numberOf(user)).filter((one) => one !== undefined));
  if (panel) panel.also({name: text, kind: "area", role: kind === "host" ? "use" : "transfer", width: data.use_width, mean: parts.map((part) => part / 1000), limit: 1, of: "share"});
  if (members.size) choose(members, `${members.size < count ? `the most of ${numbers.number(count)} that` : "which"} used ${text}`, new Set([name]));
  $("use-says").textContent = `${text}${placed(name) === name ? "" : ` (${name})`}: used to ${numbers.share(mean / 100)} on average, ${numbers.share(parts.reduce((a, b) => Math.max(a, b), 0) / 1000)} at most; when: the last track of the chart above.`;
  table($("users"), {caption: `Who used ${text}, ${ofRanks && kind === "link" ? "pairs of ranks (3>5: rank 3 sends to rank 5), " : ""}from first to last use: ${numbers.number(users.length)} of ${numbers.number(count)}`, heads: [one, "first use", "last use", "sent"], kinds: ["text", "date", "date", "bytes"],
    rows: users.map(([user, ...its]) => [typeof user === "number" ? tasks[user][ID] : user, ...its]), order: null, date, end});
  if (places) places.pick(kind, kind === "link" && linkUsers[name] ? linkUsers[name][0] : name);
}
function pickPlace(kind, name, halves) {
  const found = halves.concat(name).map((half) => uses.findIndex((use) => use[1] === kind && use[0] === half)).filter((k) => k >= 0);
  if (found.length) pickUse(found[0]);
  else $("use-says").textContent = `${kind} ${placed(name)} is not among the most used ones, which are listed here.`;
}
if (typeof data.topology === "string") { $("topology-note").textContent = data.topology; $("topology-note").hidden = !data.topology; }
else {
  $("topology-part").hidden = false;
  $("topology-says").textContent = data.topology.says;
  $("topology").setAttribute("aria-label", `${data.topology.says} Keys: plus, minus, arrows, 0; Enter picks the next most used, Shift and Enter the one before.`);
  places = topology(data, $("topology"), {placed, picked: pickPlace, stepped: (by) => pickUse((used + by + uses.length) % uses.length)});
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
if (uses.length) onlyUses = table($("uses"), {caption: "Use of hosts and links", quiet: true, heads: ["resource", "mean use", "highest use"], kinds: ["text", "share", "share"], order: null, search: "search: name of a host or link", file: "utilisation.csv",
  rows: uses.map(([name, kind, mean, parts]) => [`${kind} ${placed(name)}`, mean / 100, parts.reduce((a, b) => Math.max(a, b), 0) / 1000]), button: pickUse});

/* The table of tasks, of ranks, or of runs */
$("tasks-title").textContent = data.table && data.table.title ? data.table.title : capital(many) + (data.cut && `: ${data.cut}`);
$("tasks-part").hidden = !tasks.length && !data.table;
let onlyTasks = null;
if (data.table) {
  onlyTasks = table($("tasks"), {search: one === "run" ? "search runs: levels, status" : "search ranks: rank, host", button: one === "run" ? null : show, ...data.table, caption: $("tasks-title").textContent});
} else if (tasks.length) {
  // Columns that only some batches have stand behind the first three; their first sorts.
  const more = data.columns || {heads: [], kinds: [], rows: []}, beside = more.heads.length;
  const heads = [one, "profile", "state", ...more.heads, "user", "start", "time (s)", "waiting (s)", "contention slowdown", "limited mostly by", "for (s)", "shared with"];
  const kinds = ["text", "text", "text", ...more.kinds, "text", "date", "number", "number", "number", "text", "number", "text"];
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

function drawAll() { known = {}; if (places) { $("topology-key").style.background = gradient(); $("topology-unused").style.background = colour("nothing"); } if (panel) panel.redraw(); if (places) places.resized(); for (const again of drawings) again(); }
drawAll();
window.addEventListener("resize", later(drawAll, 100));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => { document.documentElement.dataset.paper = "yes"; drawAll(); });
window.addEventListener("afterprint", () => { delete document.documentElement.dataset.paper; drawAll(); });
document.body.dataset.ready = "yes";
})();
