"use strict";
/* The platform, drawn by places made beforehand. `data.topology`: see pages/platform.py. `tools`: names of
   links by place; `picked(kind, name, links)`, called when somebody picks something; `stepped(by)`, when
   somebody asks for the next or the one before. */
function topology(data, canvas, tools) {
const sketch = data.topology, links = sketch.links;  // [name, mean, peak, limiting, bandwidth as a part of the narrowest]
const [NAME, KIND, X, Y, WIDTH, HEIGHT] = Array(6).keys(), BANDWIDTH = 4;
const MOST_HIGH = 518, NAMES = 24, MOST_WIDE = 6;  // pixels; NAMES: above everything, for names of groups
const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";  // of the use at a time, from 0 to 100 %
let measure = 1, cell = null, chosen = null, held = null, heldHosts = null, scale = 1, middle = [0, 0], home = null;
const sides = [Infinity, Infinity, -Infinity, -Infinity];
const reach = (x, y) => { sides[0] = Math.min(sides[0], x); sides[1] = Math.min(sides[1], y); sides[2] = Math.max(sides[2], x); sides[3] = Math.max(sides[3], y); };
for (const box of sketch.boxes) { reach(box[X] - box[WIDTH] / 2, box[Y] - box[HEIGHT] / 2); reach(box[X] + box[WIDTH] / 2, box[Y] + box[HEIGHT] / 2 + 0.8); }
for (const [paths] of sketch.lines) for (const path of paths) for (let k = 0; k < path.length; k += 2) reach(path[k], path[k + 1]);
const wide = sides[2] - sides[0] + 1, high = sides[3] - sides[1] + 1;
const byName = new Map();  // the lines of each cable
sketch.lines.forEach((line, k) => line[1].forEach((name) => { if (!byName.has(name)) byName.set(name, []); byName.get(name).push(k); }));
const linkNumber = new Map(links.map((link, k) => [link[0], k]));
const halves = (name) => [name, `${name}_UP`, `${name}_DOWN`].filter((half) => linkNumber.has(half));
/* Use in per cent: now, where a time is chosen, else of the measure. */
function nowOf(kind, name) {
  const level = LEVELS.indexOf((sketch.now[`${kind} ${name}`] || "A")[cell]);
  return level > 0 ? 100 * (level - 0.5) / (LEVELS.length - 2) : 0;
}
const linkUse = (k) => cell === null ? links[k][measure] : nowOf("link", links[k][0]);
const useOf = (numbers) => numbers.reduce((most, k) => Math.max(most, linkUse(k)), 0);
const barUse = (name) => useOf(halves(name).map((half) => linkNumber.get(half)));
const hostUse = (name) => cell === null ? (sketch.hosts[name] || [0, 0, 0])[measure - 1] : nowOf("host", name);
const breadth = (line) => Math.min(MOST_WIDE, Math.max(1, ...line[2].map((k) => links[k][BANDWIDTH])));
const shade = (use) => use ? heat(use / 100) : colour("nothing");
function fit() {
  const width = canvas.parentElement.clientWidth, height = Math.max(130, Math.min(MOST_HIGH, width * high / wide + NAMES));
  scale = Math.min(width / wide, (height - NAMES) / high);
  middle = [(sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2];
  home = {height, scale, middle};
}
const toScreen = (x, y, width, height) => [width / 2 + (x - middle[0]) * scale, (height + NAMES / 2) / 2 - (y - middle[1]) * scale];
const toSketch = (px, py, width, height) => [middle[0] + (px - width / 2) / scale, middle[1] - (py - (height + NAMES / 2) / 2) / scale];
const isHeld = (line) => line[1].some((name) => held.has(name) || halves(name).some((half) => held.has(half)));
function draw() {
  if (!home) fit();
  const [pen, width] = sized(canvas, home.height), height = home.height;
  pen.lineCap = "round";
  const thin = Math.min(1.2, Math.max(0.4, scale / 25));
  const order = sketch.lines.map((line, k) => [useOf(line[2]), k]).sort((a, b) => a[0] - b[0]);
  const stroke = (line, paint, thick) => {
    pen.strokeStyle = paint; pen.lineWidth = thick;
    for (const path of line[0]) {
      pen.beginPath();
      for (let k = 0; k < path.length; k += 2) pen[k ? "lineTo" : "moveTo"](...toScreen(path[k], path[k + 1], width, height));
      pen.stroke();
    }
  };
  for (const [use, k] of order) { const line = sketch.lines[k]; pen.globalAlpha = held && !isHeld(line) ? 0.12 : 1; stroke(line, shade(use), thin * 1.5 * breadth(line)); }
  pen.globalAlpha = 1;
  for (const k of chosen && chosen.kind === "link" ? byName.get(chosen.name) || [] : []) { const line = sketch.lines[k], thick = thin * 1.5 * breadth(line); stroke(line, colour("ink"), thick + 6); stroke(line, colour("paper"), thick + 2); stroke(line, shade(useOf(line[2])), thick); }
  pen.textAlign = "center"; pen.textBaseline = "middle";
  for (const box of sketch.boxes) {
    const [x, y] = toScreen(box[X], box[Y], width, height), w = box[WIDTH] * scale, h = box[HEIGHT] * scale;
    if (x + w < 0 || x - w > width || y + h < 0 || y - h > height) continue;
    const use = box[KIND] === "host" ? hostUse(box[NAME]) : box[KIND] === "link" ? barUse(box[NAME]) : null, fill = use === null ? colour("paper") : shade(use);
    pen.globalAlpha = heldHosts && box[KIND] === "host" && !heldHosts.has(box[NAME]) ? 0.12 : 1;
    pen.fillStyle = fill;
    pen.fillRect(x - w / 2, y - h / 2, w, h);
    const mine = chosen && chosen.name === box[NAME];
    if (w > 4 || mine) { pen.strokeStyle = colour(mine ? "ink" : "soft"); pen.lineWidth = mine ? 3 : Math.min(1, w / 16); pen.strokeRect(x - w / 2, y - h / 2, w, h); }
    const size = Math.min(12, h * 0.7, w / (0.6 * box[NAME].length));
    if (box[KIND] === "host" && size >= 8) { pen.font = `${size}px system-ui, sans-serif`; pen.fillStyle = inkOn(fill); pen.fillText(box[NAME], x, y); }
  }
  pen.globalAlpha = 1;
  for (const [name, hosts, x, y, its] of sketch.groups) {
    const text = `${name}: ${numbers.count(hosts, "host")}`, size = Math.min(13, (its + 1.5) * scale / (0.55 * text.length));
    if (size < 8) continue;
    const [px, py] = toScreen(x, y, width, height);
    pen.font = `${size}px system-ui, sans-serif`;
    const room = pen.measureText(text).width;
    pen.globalAlpha = 0.8; pen.fillStyle = colour("paper"); pen.fillRect(px - room / 2 - 2, py - size - 5, room + 4, size + 3); pen.globalAlpha = 1;
    pen.fillStyle = colour("ink"); pen.fillText(text, px, py - size / 2 - 4);
  }
  canvas.dataset.drawn = sketch.boxes.length + sketch.lines.length;
}
const redraw = soon(draw);
function zoom(factor, px, py) {
  const box = canvas.getBoundingClientRect(), at = toSketch(px ?? box.width / 2, py ?? box.height / 2, box.width, box.height), before = scale;
  scale = Math.min(Math.max(scale * factor, home.scale), home.scale * 400);
  middle = middle.map((value, k) => at[k] + (value - at[k]) * before / scale);
  redraw();
}
const pan = (dx, dy) => { middle = [middle[0] - dx / scale, middle[1] + dy / scale]; redraw(); };
const all = () => { scale = home.scale; middle = [...home.middle]; redraw(); };
/* What is at a place on the screen: a box, or the nearest line within a few pixels. */
function at(event) {
  const area = canvas.getBoundingClientRect(), [x, y] = toSketch(event.clientX - area.left, event.clientY - area.top, area.width, area.height);
  for (const box of sketch.boxes) if (Math.abs(box[X] - x) <= Math.max(box[WIDTH] / 2, 3 / scale) && Math.abs(box[Y] - y) <= Math.max(box[HEIGHT] / 2, 3 / scale) && (box[KIND] === "host" || box[KIND] === "link")) return {kind: box[KIND], name: box[NAME]};
  let best = 8 / scale, found = null;
  for (const [paths, names] of sketch.lines) {
    if (!names.length) continue;
    for (const path of paths) for (let k = 0; k + 3 < path.length; k += 2) {
      const [ax, ay, bx, by] = path.slice(k, k + 4), dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
      const t = length ? Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1) : 0, gap = Math.hypot(x - ax - t * dx, y - ay - t * dy);
      if (gap < best) { best = gap; found = {kind: "link", name: names.reduce((a, b) => barUse(b) > barUse(a) ? b : a)}; }
    }
  }
  return found;
}
function describe(found) {
  const rows = found.kind === "host" ? [["", sketch.hosts[found.name] || [0, 0, 0]]] : halves(found.name).map((half) => [tools.placed(half), links[linkNumber.get(half)].slice(1)]);
  const says = (part) => numbers.share(part / 100);
  const text = rows.map(([name, [mean, peak, limiting]]) => `${name ? `${name}: ` : ""}${says(mean)} of its capacity on average, ${says(peak)} at most; limited a task ${says(limiting)} of the time`);
  return [`${found.kind} ${found.name}`, ...(rows.length ? text : ["not used"])].join("\n");
}
function pick(found, tell) {
  chosen = found;
  redraw();
  if (tell && found) tools.picked(found.kind, found.name, found.kind === "host" ? [found.name] : halves(found.name));
}
pointing(canvas, {
  dragged: (dx, dy, event) => { if (scale > home.scale || event.pointerType === "mouse") pan(dx, dy); },
  pinched: zoom,
  pointed: (event, gone) => { const found = gone ? null : at(event); tip(event, found ? describe(found) : ""); },
  clicked: (event) => { const found = at(event); if (found) pick(found, true); },
});
const step = (event) => tools.stepped(event.shiftKey ? -1 : 1);
keys(canvas, {"+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60), "0": all, Enter: step, " ": step});
asTable($("topology-table"), () => [["host", Object.entries(sketch.hosts)], ["link", links.map(([name, ...its]) => [tools.placed(name), its])]].filter(([, rows]) => rows.length).map(([kind, rows]) => (
  {caption: `Use of ${kind}s`, heads: [kind, "mean use", "highest use", "limited a task", ...(kind === "link" ? ["bandwidth, of the narrowest"] : [])], kinds: ["text", "share", "share", "share", "number"], order: [1, true],
    rows: rows.map(([name, [mean, peak, limiting, ...wide]]) => [name, mean / 100, peak / 100, limiting / 100, ...wide])})));
return {
  draw, zoom, all,
  resized: () => { const was = home; fit(); if (was) scale = home.scale; draw(); },
  colour: (name) => { cell = name === "now" ? cell ?? 0 : null; if (cell === null) measure = 1 + sketch.measures.indexOf(name); redraw(); },
  now: (k) => { cell = k; redraw(); },
  hold: (names, hosts) => { [held, heldHosts] = [names, hosts].map((set) => set && set.size ? set : null); redraw(); },
  pick: (kind, name) => pick({kind, name}, false),
};
}
