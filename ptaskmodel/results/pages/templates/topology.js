"use strict";
/* The platform, drawn by places made beforehand. `data`: see topology_page.py. `tools`: helpers of
   the page; `picked(kind, name, links)`, called when somebody picks something; and `stepped(by)`, when
   somebody asks for the next or the one before. */
function topology(data, canvas, tools) {
const {sized, tip, number} = tools;
const [NAME, KIND, X, Y, WIDTH, HEIGHT] = data.boxes[0].keys();
const links = data.links;  // [name, mean, peak, limiting]
const MOST_HIGH = 518;  // what its frame shows without scrolling
const NAMES = 24;  // pixels above everything, for names of groups
let measure = 1, chosen = null, scale = 1, middle = [0, 0], home = null;
const sides = [Infinity, Infinity, -Infinity, -Infinity];
const reach = (x, y) => { sides[0] = Math.min(sides[0], x); sides[1] = Math.min(sides[1], y); sides[2] = Math.max(sides[2], x); sides[3] = Math.max(sides[3], y); };
for (const box of data.boxes) { reach(box[X] - box[WIDTH] / 2, box[Y] - box[HEIGHT] / 2); reach(box[X] + box[WIDTH] / 2, box[Y] + box[HEIGHT] / 2 + 0.8); }
for (const [paths] of data.lines) for (const path of paths) for (let k = 0; k < path.length; k += 2) reach(path[k], path[k + 1]);
const wide = sides[2] - sides[0] + 1, high = sides[3] - sides[1] + 1;
const heat = (percent) => {
  if (!percent) return data.unused[0];
  const at = Math.min(percent, 100) / 100 * (data.heat.length - 1), k = Math.min(Math.floor(at), data.heat.length - 2);
  const channel = (colour, c) => parseInt(colour.slice(1 + 2 * c, 3 + 2 * c), 16);
  return `rgb(${[0, 1, 2].map((c) => Math.round(channel(data.heat[k], c) * (k + 1 - at) + channel(data.heat[k + 1], c) * (at - k))).join(",")})`;
};
const byName = new Map();  // the lines and bars of each cable
data.lines.forEach((line, k) => line[1].forEach((name) => { if (!byName.has(name)) byName.set(name, []); byName.get(name).push(k); }));
const linkNumber = new Map(links.map((link, k) => [link[0], k]));
const halves = (name) => [name, `${name}_UP`, `${name}_DOWN`].filter((half) => linkNumber.has(half));
const useOf = (numbers, m) => numbers.reduce((most, k) => Math.max(most, links[k][m]), 0);
const barUse = (name, m) => useOf(halves(name).map((half) => linkNumber.get(half)), m);
const hostUse = (name, m) => (data.hosts[name] || [0, 0, 0])[m - 1];
function fit() {
  const width = canvas.parentElement.clientWidth;
  const height = Math.max(130, Math.min(MOST_HIGH, width * high / wide + NAMES));
  scale = Math.min(width / wide, (height - NAMES) / high);
  middle = [(sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2];
  home = {height, scale, middle};
}
const toScreen = (x, y, width, height) => [width / 2 + (x - middle[0]) * scale, (height + NAMES / 2) / 2 - (y - middle[1]) * scale];
const toSketch = (px, py, width, height) => [middle[0] + (px - width / 2) / scale, middle[1] - (py - (height + NAMES / 2) / 2) / scale];
function draw() {
  if (!home) fit();
  const [pen, width] = sized(canvas, home.height), height = home.height;
  pen.lineCap = "round";
  const thin = Math.min(1, Math.max(0.35, scale / 25));
  const order = data.lines.map((line, k) => [useOf(line[2], measure), k]).sort((a, b) => a[0] - b[0]);
  const stroke = (line, colour, thick) => {
    pen.strokeStyle = colour; pen.lineWidth = thick;
    for (const path of line[0]) {
      pen.beginPath();
      for (let k = 0; k < path.length; k += 2) pen[k ? "lineTo" : "moveTo"](...toScreen(path[k], path[k + 1], width, height));
      pen.stroke();
    }
  };
  for (const [use, k] of order) stroke(data.lines[k], use ? heat(use) : data.unused[1], thin * (1 + 0.05 * use));
  const picked = chosen && chosen.kind === "link" ? byName.get(chosen.name) || [] : [];
  for (const k of picked) { stroke(data.lines[k], "#D55E00", thin * 6 + 3); stroke(data.lines[k], heat(useOf(data.lines[k][2], measure)), thin * 3 + 1); }
  pen.textAlign = "center"; pen.textBaseline = "middle";
  for (const box of data.boxes) {
    const [x, y] = toScreen(box[X], box[Y], width, height), w = box[WIDTH] * scale, h = box[HEIGHT] * scale;
    if (x + w < 0 || x - w > width || y + h < 0 || y - h > height) continue;
    const use = box[KIND] === "host" ? hostUse(box[NAME], measure) : box[KIND] === "link" ? barUse(box[NAME], measure) : null;
    pen.fillStyle = use === null ? "#fff" : heat(use);
    pen.fillRect(x - w / 2, y - h / 2, w, h);
    const mine = chosen && chosen.name === box[NAME];
    if (w > 4 || mine) { pen.strokeStyle = mine ? "#D55E00" : "#444"; pen.lineWidth = mine ? 3 : Math.min(1, w / 16); pen.strokeRect(x - w / 2, y - h / 2, w, h); }
    const size = Math.min(12, h * 0.7, w / (0.6 * box[NAME].length));
    if (box[KIND] === "host" && size >= 6) { pen.font = `${size}px system-ui, sans-serif`; pen.fillStyle = use > 45 ? "#fff" : "#111"; pen.fillText(box[NAME], x, y); }
  }
  for (const [name, hosts, x, y, its] of data.groups) {
    const text = `${name}: ${hosts.toLocaleString("en")} hosts`, size = Math.min(13, (its + 1.5) * scale / (0.55 * text.length));
    if (size < 7) continue;
    const [px, py] = toScreen(x, y, width, height);
    pen.font = `italic ${size}px system-ui, sans-serif`;
    const room = pen.measureText(text).width;
    pen.fillStyle = "rgba(255,255,255,.75)"; pen.fillRect(px - room / 2 - 2, py - size - 5, room + 4, size + 3);
    pen.fillStyle = "#333"; pen.fillText(text, px, py - size / 2 - 4);
  }
  canvas.dataset.drawn = data.boxes.length + data.lines.length;
}
const redraw = (() => { let asked = false; return () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; draw(); }); } }; })();
function zoom(factor, px, py) {
  const box = canvas.getBoundingClientRect(), at = toSketch(px ?? box.width / 2, py ?? box.height / 2, box.width, box.height);
  const before = scale;
  scale = Math.min(Math.max(scale * factor, home.scale), home.scale * 400);
  middle = middle.map((value, k) => at[k] + (value - at[k]) * before / scale);
  redraw();
}
const pan = (dx, dy) => { middle = [middle[0] - dx / scale, middle[1] + dy / scale]; redraw(); };
const all = () => { scale = home.scale; middle = [...home.middle]; redraw(); };
/* What is at a place on the screen: a box, or the nearest line within a few pixels. */
function at(event) {
  const area = canvas.getBoundingClientRect();
  const [x, y] = toSketch(event.clientX - area.left, event.clientY - area.top, area.width, area.height);
  for (const box of data.boxes) if (Math.abs(box[X] - x) <= Math.max(box[WIDTH] / 2, 3 / scale) && Math.abs(box[Y] - y) <= Math.max(box[HEIGHT] / 2, 3 / scale) && (box[KIND] === "host" || box[KIND] === "link")) return {kind: box[KIND], name: box[NAME]};
  let best = 8 / scale, found = null;
  for (const [paths, names] of data.lines) {
    if (!names.length) continue;
    for (const path of paths) for (let k = 0; k + 3 < path.length; k += 2) {
      const [ax, ay, bx, by] = path.slice(k, k + 4), dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
      const t = length ? Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1) : 0;
      const gap = Math.hypot(x - ax - t * dx, y - ay - t * dy);
      if (gap < best) { best = gap; found = {kind: "link", name: names.reduce((a, b) => barUse(b, 1) > barUse(a, 1) ? b : a)}; }
    }
  }
  return found;
}
function describe(found) {
  const rows = found.kind === "host" ? [["", [hostUse(found.name, 1), hostUse(found.name, 2), hostUse(found.name, 3)]]]
    : halves(found.name).map((half) => [half === found.name ? "" : half.endsWith("_UP") ? "up: " : "down: ", links[linkNumber.get(half)].slice(1)]);
  const text = rows.map(([way, [mean, peak, limiting]]) => `${way}${number(mean)} % of its capacity on average, ${number(peak)} % at most; limited somebody ${number(limiting)} % of the time`);
  return [`${found.kind} ${found.name}`, ...(rows.length ? text : ["not used"])].join("\n");
}
function pick(found, tell) {
  chosen = found;
  redraw();
  if (tell && found) tools.picked(found.kind, found.name, found.kind === "host" ? [found.name] : halves(found.name));
}
const pointers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); moved = 0; canvas.setPointerCapture(event.pointerId); });
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
canvas.addEventListener("pointerleave", (event) => tip(event, ""));
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (before) {
    const area = canvas.getBoundingClientRect();
    moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    if (pointers.size === 2) {
      const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
      const span = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
      if (span(before) > 5) zoom(span(event) / span(before), other.clientX - area.left, other.clientY - area.top);
    } else if (scale > home.scale || event.pointerType === "mouse") pan(event.clientX - before.clientX, event.clientY - before.clientY);
    pointers.set(event.pointerId, event);
    return;
  }
  const found = at(event);
  tip(event, found ? describe(found) : "");
});
canvas.addEventListener("click", (event) => { if (moved < 6) { const found = at(event); if (found) pick(found, true); } });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const area = canvas.getBoundingClientRect();
  zoom(event.deltaY > 0 ? 0.8 : 1.25, event.clientX - area.left, event.clientY - area.top);
}, {passive: false});
canvas.addEventListener("keydown", (event) => {
  const action = {"+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60), "0": all, Enter: () => tools.stepped(event.shiftKey ? -1 : 1), " ": () => tools.stepped(event.shiftKey ? -1 : 1)}[event.key];
  if (action) { event.preventDefault(); action(); }
});
return {
  draw, zoom, all,
  resized: () => { const was = home; fit(); if (was) scale = home.scale; draw(); },
  colour: (name) => { measure = 1 + data.measures.indexOf(name); redraw(); },
  pick: (kind, name) => pick({kind, name}, false),
};
}
