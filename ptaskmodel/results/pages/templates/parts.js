"use strict";
/* What pages are made of: elements, colours, tables. */
const $ = (id) => document.getElementById(id);
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
function soon(action) {
  let asked = false;
  return () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; action(); }); } };
}
/* The colour of a role, as the page is now: light, dark or printed. */
let known = {};
const colour = (role) => known[role] || (known[role] = getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim());
const CATEGORIES = [0, 1, 2, 3, 4, 5].map((k) => `category-${k}`), HEAT = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((k) => `heat-${k}`);
/* Of an amount from 0 to 1: pale to dark, on dark paper dark to pale. */
function heat(part) {
  const name = `heat ${Math.round(256 * part)}`;
  return known[name] || (known[name] = shadeOf(part));
}
function shadeOf(part) {
  const at = Math.min(Math.max(part, 0), 1) * (HEAT.length - 1), k = Math.min(Math.floor(at), HEAT.length - 2);
  const channel = (name, c) => parseInt(colour(name).slice(1 + 2 * c, 3 + 2 * c), 16);
  return `rgb(${[0, 1, 2].map((c) => Math.round(channel(HEAT[k], c) * (k + 1 - at) + channel(HEAT[k + 1], c) * (at - k))).join(",")})`;
}
const gradient = () => `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(heat).join(",")})`;
/* Red, green and blue of a colour, 0 to 255. */
const channels = (text) => text.startsWith("#") ? [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)) : text.match(/\d+/g).map(Number);
/* Black or white, whichever is read better on a colour. */
function inkOn(text) {
  const [r, g, b] = channels(text);
  const linear = (v) => v <= 10 ? v / 3294 : ((v + 14.025) / 269.025) ** 2.4;
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.179 ? "#000000" : "#FFFFFF";
}
const elided = (name, most) => name.length <= most ? name : `${name.slice(0, Math.ceil(most / 2) - 1)}…${name.slice(-Math.max(Math.floor(most / 2) - 1, 1))}`;
function sized(canvas, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2), width = canvas.parentElement.clientWidth;
  const size = [width, height].map((side) => Math.max(Math.floor(side * ratio), 1));
  canvas.style.height = `${height}px`;
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return [pen, width];
}
function tip(event, text) {
  const box = $("tip");
  box.style.display = text ? "block" : "none";
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 6), 4)}px`;
  box.style.top = `${Math.max(Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 6), 4)}px`;
}
/* Pointers on a canvas: dragged(dx, dy), pinched(factor, x, y), pointed(event), clicked(event); x and y in the canvas. */
function pointing(canvas, {dragged, pinched, pointed, clicked, begun}) {
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => { pointers.set(event.pointerId, event); moved = 0; canvas.setPointerCapture(event.pointerId); if (begun) begun(event); });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", (event) => { tip(event, ""); pointed(event, true); });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (before) {
      const area = canvas.getBoundingClientRect();
      moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
      if (pointers.size === 2) {
        const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
        const span = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
        if (span(before) > 5) pinched(span(event) / span(before), other.clientX - area.left, other.clientY - area.top);
      } else dragged(event.clientX - before.clientX, event.clientY - before.clientY, event);
      pointers.set(event.pointerId, event);
    } else pointed(event, false);
  });
  canvas.addEventListener("click", (event) => { if (moved < 6) clicked(event); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const area = canvas.getBoundingClientRect();
    pinched(event.deltaY > 0 ? 0.8 : 1.25, event.clientX - area.left, event.clientY - area.top);
  }, {passive: false});
}
const keys = (node, actions) => node.addEventListener("keydown", (event) => {
  const typed = event.ctrlKey || event.metaKey || event.altKey || (node === document && /INPUT|SELECT/.test(event.target.tagName));
  const action = typed ? null : actions[event.key];
  if (action) { event.preventDefault(); action(event); }
});

/* Of the buttons in rows of a table, one is in the order of tabs; arrows go to the others. */
function roving(body, which) {
  const go = (across, down) => () => {
    const from = document.activeElement, row = from.closest("tr"), buttons = [...body.querySelectorAll(which)];
    const beside = across ? buttons[buttons.indexOf(from) + across] : null;
    const rows = [...body.rows], place = from.closest("th, td").cellIndex;
    let next = beside;
    for (let k = rows.indexOf(row) + down; down && !next && rows[k]; k += down) {
      const there = [...rows[k].querySelectorAll(which)].sort((a, b) => Math.abs(a.closest("th, td").cellIndex - place) - Math.abs(b.closest("th, td").cellIndex - place));
      next = there[0];
    }
    if (next) { from.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  };
  keys(body, {ArrowDown: go(0, 1), ArrowUp: go(0, -1), ArrowRight: go(1, 0), ArrowLeft: go(-1, 0)});
}

/* The words of pages, each a tooltip where it heads a column. */
const WORDS = {
  "contention slowdown": "time taken over the time alone on the same hosts: 1 where nobody disturbed; of what was killed, of the part that it did",
  "bounded slowdown": "of a job: (waiting + running) over running, running times below tau (60 s, if nothing else is said) counted as tau; at least 1",
  "limited by": "what set the pace: a host or a link that was full; one core, which a computation cannot exceed; the window of TCP, which holds a flow over a long latency; a rate bound that the task was given; latency; a delay",
  "shared with": "who else used that host or link at the time",
  "utilisation": "host seconds in use over those that there were",
  "useful": "host time that the jobs that ended would have needed alone, as a part of all",
  "lost": "time taken beyond the time alone on the same hosts",
  "node h": "hours of one host",
  "L07, CM02, LV08, SMPI": "models of the network, by SimGrid's names: L07 for parallel tasks, the others for flows and messages",
  "bmf, fairbottleneck, maxmin": "solvers: the rule by which those who meet on a resource share it",
};

/* A shadow where columns are cut; returns what looks again. */
function shadowed(scroll) {
  const cut = () => {
    const left = scroll.scrollLeft > 1, right = scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1;
    scroll.dataset.cut = left && right ? "both" : left ? "left" : right ? "right" : "";
  };
  scroll.addEventListener("scroll", cut);
  new ResizeObserver(cut).observe(scroll);
  return cut;
}
/* A table with a caption (quiet: only heard, as a heading says it), in a box that scrolls; and what looks for cut columns. */
function boxed(node, caption, className, quiet) {
  const scroll = add(node, "div", undefined, {className: "scroll", tabIndex: 0}), grid = add(scroll, "table", undefined, {className});
  scroll.setAttribute("role", "group"); scroll.setAttribute("aria-label", caption);
  add(grid, "caption", caption, {className: quiet ? "quiet" : ""});
  return [grid, shadowed(scroll)];
}

/* What a picture shows as tables, made whenever somebody opens it: `make()` gives their specs. */
function asTable(node, make) {
  const more = add(node, "details", undefined, {className: "numbers-of"}), box = add(more, "div");
  more.prepend(add(document.createDocumentFragment(), "summary", "Show as table"));
  const fill = () => { box.textContent = ""; if (more.open) for (const spec of make()) table(add(box, "div"), spec); };
  more.addEventListener("toggle", fill);
  return fill;
}

/* Tables: {caption, heads, kinds, rows, order: [column, down] or null, search, key: important columns, same: columns in one unit, button(k), dates(x)}.
   kinds: "text", "said" (a number as a text), "drawn" (see `drawn`), or a kind of `numbers.column`, "date". Returns only(chosen). */
const FIRST_ROWS = 50, MORE_ROWS = 1000, SEARCHED = 12;
const TIME_HEAD = / \(s\)$/, SHORT = 7200;  // s: dates of shorter runs are told in one unit
let tables = 0;
/* A cell with marks on a line from 0 to 1: {label, text, value, marks: [from, to or null: a sign, role, sign, how far down]}. */
function drawn(cell, {label, text, marks}) {
  cell.title = text;
  if (label) add(cell, "span", label);
  const box = add(cell, "div", undefined, {className: label ? "drawn low" : "drawn"});
  box.setAttribute("role", "img"); box.setAttribute("aria-label", text);
  for (const [from, to, role, sign, down] of marks) {
    const mark = add(box, "i", to === null ? sign : "", {className: to === null ? "sign" : sign});
    mark.style.left = `${100 * from}%`; mark.style.top = `${100 * down}%`;
    if (to !== null) mark.style.width = `${100 * (to - from)}%`;
    mark.style.setProperty("--mark", `var(--${role})`);
  }
}
const plainly = (value) => value && typeof value === "object" ? value.label || value.text : value ?? "";
function table(node, spec) {
  const all = spec.heads.map((_, c) => c);
  // Columns in which nothing stands are left out.
  const kept = all.filter((c) => c === 0 || spec.rows.some((row) => row[c] !== null && row[c] !== undefined && row[c] !== ""));
  const values = spec.rows, kinds = kept.map((c) => TIME_HEAD.test(spec.heads[c]) && spec.kinds[c] === "number" || spec.kinds[c] === "date" && spec.end < SHORT ? "time" : spec.kinds[c]);
  const words = kinds.map((kind) => kind === "text"), shown = [], heads = [];
  kept.forEach((c, k) => {
    const alike = spec.same && spec.same.includes(c) ? spec.same : [c], column = alike.flatMap((one) => values.map((row) => row[one])), name = spec.heads[c].replace(kinds[k] === "time" ? TIME_HEAD : /^$/, "");
    if (kinds[k] === "drawn") { shown.push((row) => plainly(values[row][c])); heads.push(name); return; }
    if (kinds[k] === "text" || kinds[k] === "said") { shown.push((row) => values[row][c] === null ? "" : values[row][c]); heads.push(name); return; }
    if (kinds[k] === "date") { shown.push((row) => values[row][c] === null ? "" : spec.date(values[row][c])); heads.push(name); return; }
    const [unit, text] = numbers.format(kinds[k], column), signed = spec.signed && spec.signed.includes(c);
    shown.push((row) => { const value = values[row][c]; return numbers.missing(value) ? "" : (signed && value > 0 && /[1-9]/.test(text(value)) ? "+" : "") + text(value); });
    heads.push(unit ? `${name} (${unit})` : name);
  });
  const number = (value) => typeof value === "number" ? value : Number(String(value).replace(/[\u202f, ]/g, "").replace("−", "-").match(/^[+]?-?[\d.]+(e-?\d+)?/)?.[0] ?? NaN);
  const important = new Set([0, ...(spec.key || [1, kept.length - 1]).map((c) => kept.indexOf(c))]);
  const folds = kept.length > 3;
  let column = spec.order ? Math.max(kept.indexOf(spec.order[0]), 0) : -1, down = spec.order ? spec.order[1] : true;
  let most = FIRST_ROWS, wanted = null, search = "", at = 0;
  node.textContent = "";
  const bar = add(node, "div", undefined, {className: "bar"}), count = add(bar, "span", "", {className: "soft count", id: node.id ? `${node.id}-count` : ""});
  count.setAttribute("aria-live", "polite");
  const name = `${node.id || "table"}-${tables++}`;
  if (spec.search || values.length > SEARCHED) {
    const box = add(bar, "input", undefined, {type: "search", placeholder: spec.search || "search", id: `${node.id || name}-search`});
    box.setAttribute("aria-label", `Search: ${spec.caption}`);
    bar.prepend(box);
    box.addEventListener("input", later(() => { search = box.value; most = FIRST_ROWS; fill(); }, 120));
  }
  const whole = add(bar, "button", "", {type: "button"}), copy = values.length ? add(bar, "button", "Copy as CSV", {type: "button"}) : null;
  const clear = add(bar, "button", "Show all", {type: "button", hidden: true});
  clear.onclick = () => { only(null); if (spec.cleared) spec.cleared(); };
  whole.onclick = () => { most = values.length > 5 * MORE_ROWS ? most + MORE_ROWS : values.length; fill(); };
  const [grid, cut] = boxed(node, spec.caption, "folds", spec.quiet);
  const head = add(add(grid, "thead"), "tr"), body = add(grid, "tbody");
  heads.forEach((text, c) => {
    const cell = add(head, "th", undefined, {className: `${words[c] ? "" : "number"}${important.has(c) ? "" : " extra"}`, scope: "col", title: WORDS[spec.heads[kept[c]]] || ""});
    cell.dataset.head = text;  // printed pages repeat it; they repeat no buttons
    add(cell, "button", text, {type: "button"}).onclick = () => { down = column === c ? !down : !words[c]; column = c; fill(); };
  });
  if (folds) add(head, "th", "", {className: "opens", scope: "col"});
  const haystack = () => { haystack.texts ||= values.map((row) => kept.filter((_, c) => words[c]).map((c) => row[c]).join(" ").toLowerCase()); return haystack.texts; };
  if (!bar.querySelector("input") && values.length <= FIRST_ROWS) { bar.classList.add("low"); node.append(bar); }
  let found = [];
  function chosen() {
    const parts = search.toLowerCase().split(/\s+/).filter(Boolean);
    found = [];
    for (let k = 0; k < values.length; k++) if ((!wanted || wanted[0](k)) && parts.every((part) => haystack()[k].includes(part))) found.push(k);
    const sign = down ? -1 : 1, c = kept[column];
    if (column >= 0) found.sort((a, b) => {
      let x = values[a][c], y = values[b][c];
      if (kinds[column] === "said") { x = number(x); y = number(y); if (Number.isNaN(x)) x = null; if (Number.isNaN(y)) y = null; }
      if (kinds[column] === "drawn") { x = x ? x.value : null; y = y ? y.value : null; }
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y) || a - b;
    });
  }
  function fill() {
    chosen();
    body.textContent = "";
    const rows = document.createDocumentFragment();
    found.slice(0, most).forEach((k, place) => {
      const row = add(rows, "tr", undefined, {className: place >= FIRST_ROWS ? "beyond" : ""});
      row.dataset.row = k;
      kept.forEach((c, n) => {
        const text = shown[n](k), cell = add(row, n ? "td" : "th", undefined, {className: `${words[n] ? "" : "number"}${important.has(n) ? "" : " extra"}`, title: words[n] && text.length > 24 ? text : ""});
        if (!n) cell.scope = "row";
        cell.dataset.head = heads[n];
        if (kinds[n] === "share" && values[k][c] >= 0 && values[k][c] <= 1.0001) cell.style.setProperty("--part", values[k][c]);
        if (spec.button && n === 0) add(cell, "button", elided(String(text), 60), {type: "button", title: text, tabIndex: place === at ? 0 : -1}).onclick = () => spec.button(k);
        else if (kinds[n] === "drawn" && values[k][c]) drawn(cell, values[k][c]);
        else cell.textContent = text;
      });
      if (folds) { const cell = add(row, "td", undefined, {className: "opens"}), more = add(cell, "button", "⋯", {type: "button", tabIndex: -1}); more.setAttribute("aria-label", "All columns"); more.onclick = () => row.classList.toggle("open"); }
    });
    body.appendChild(rows);
    [...head.children].slice(0, heads.length).forEach((cell, c) => cell.setAttribute("aria-sort", c !== column ? "none" : down ? "descending" : "ascending"));
    const n = values.length;
    count.textContent = (found.length < n ? `${numbers.number(found.length)} of ${numbers.number(n)}` : `${numbers.number(n)} in all`) + (wanted ? `, ${wanted[1]}` : "") + (found.length > most ? `; the first ${numbers.number(most)} are shown` : "") + (n > FIRST_ROWS && spec.file ? `; all are in ${spec.file}` : "");
    count.hidden = n <= SEARCHED && found.length === n;
    whole.textContent = n > 5 * MORE_ROWS ? `${numbers.number(MORE_ROWS)} more` : `All ${numbers.number(found.length)}`;
    whole.hidden = found.length <= most;
    clear.hidden = !wanted;
    cut();
  }
  roving(body, "th button");
  if (copy) copy.onclick = () => {
    const quoted = (text) => /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    const lines = [kept.map((c) => quoted(spec.heads[c])), ...found.map((k) => kept.map((c) => quoted(String(plainly(values[k][c])))))];
    navigator.clipboard?.writeText(lines.map((line) => line.join(",")).join("\n") + "\n").then(() => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy as CSV"; }, 1500); }, () => {});
  };
  /* Shows only the rows for which a function of their number holds, and says of what they are. */
  function only(chosenRows) { wanted = chosenRows; most = FIRST_ROWS; fill(); }
  fill();
  return only;
}
