"use strict";
/* Charts: each from its numbers, with the sentence that tells them. */
const SVG = document.createRange().createContextualFragment("<svg></svg>").firstChild.namespaceURI;
function draw(parent, tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}
/* A figure: what it says, what it is of, an SVG that `paint(svg, width)` fills and gives a height, redrawn at each width; its numbers as a table. */
function figure(node, {note, sentence}, paint, numbersOf) {
  const whole = add(node, "figure"), caption = add(whole, "figcaption");
  add(caption, "p", sentence);
  if (note) add(caption, "p", note, {className: "soft"});
  const svg = draw(whole, "svg", {role: "img", "aria-label": sentence});
  const again = () => {
    const width = Math.max(whole.clientWidth, 240);
    svg.textContent = "";
    const height = paint(svg, width);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`); svg.setAttribute("width", width); svg.setAttribute("height", height);
  };
  again();
  drawings.push(again);
  asTable(whole, () => [{caption: sentence, order: null, ...numbersOf()}]);
}
const drawings = [];
/* A logarithmic axis along the bottom, marks: [[value, text], ...]; returns the x of a value. */
function logAxis(svg, marks, from, to, left, right, top, bottom) {
  const x = (value) => left + Math.log(Math.max(value, from) / from) / Math.log(to / from) * (right - left);
  let last = -Infinity;
  for (const [mark, name] of marks) if (mark <= to * 1.0001) {
    draw(svg, "line", {x1: x(mark), x2: x(mark), y1: top, y2: bottom, stroke: "var(--line)"});
    if (x(mark) - last <= 48) continue;
    const most = right + 14, beyond = x(mark) + 3.5 * name.length > most;
    draw(svg, "text", {x: beyond ? most : x(mark), y: bottom + 16, "text-anchor": beyond ? "end" : "middle"}, name);
    last = x(mark);
  }
  return x;
}
const charts = {
  /* Waits by class: those at once apart, then 25 to 95 % as a line, median as a dot, the longest as a bar; dots of few. */
  strip(node, spec) {
    const {rows} = spec;
    figure(node, spec, (svg, width) => {
      const narrow = width < 560, left = narrow ? 166 : 300, right = width - 14, top = 26, high = 24, bottom = top + high * rows.length;
      const x = logAxis(svg, spec.marks, 1, spec.to, left, right, top - 4, bottom);
      const head = (at, text, anchor = "end") => draw(svg, "text", {x: at, y: 14, "text-anchor": anchor}, text);
      head(0, spec.label, "start"); head(narrow ? 104 : 150, "jobs"); head(narrow ? 156 : 210, "at once"); if (!narrow && spec.killed) head(288, "killed");
      head(right, narrow ? "wait of the others (log)" : "wait of the others (log): 25 · ● 50 · 75 — 95 % | longest");
      rows.forEach((row, k) => {
        const y = top + high * (k + 0.5), says = (at, text) => draw(svg, "text", {x: at, y: y + 4, "text-anchor": "end"}, text);
        draw(svg, "text", {x: 0, y: y + 4, class: "ink"}, elided(row.name, narrow ? 11 : 18)); says(narrow ? 104 : 150, numbers.number(row.jobs)); says(narrow ? 156 : 210, numbers.share(Number(row.zero.toFixed(2))));
        if (!narrow && spec.killed && row.killed) { draw(svg, "text", {x: 288, y: y + 4, "text-anchor": "end", style: "fill:var(--lost)"}, `✕ ${numbers.share(Number(row.killed.toFixed(2)))}`); }
        draw(svg, "line", {x1: left, x2: right, y1: y + high / 2, y2: y + high / 2, stroke: "var(--line)"});
        const group = draw(svg, "g", {}), [q25, q50, q75, q95, most] = row.quantiles;
        draw(group, "title", {}, row.quantiles.length ? `${row.name}: ${numbers.count(row.jobs, "job")}; of those that waited, 25 %: ${numbers.duration(q25)}, median ${numbers.duration(q50)}, 75 %: ${numbers.duration(q75)}, 95 %: ${numbers.duration(q95)}, longest ${numbers.duration(most)}` : `${row.name}: nobody waited`);
        draw(group, "rect", {x: left, y: y - 10, width: right - left, height: 20, fill: "transparent"});
        if (!row.quantiles.length) return;
        if (row.dots) { for (const value of row.dots) draw(group, "circle", {cx: x(value), cy: y, r: 3, fill: "var(--wait)", stroke: "var(--wait-text)"}); return; }
        draw(group, "line", {x1: x(q25), x2: x(q95), y1: y, y2: y, stroke: "var(--wait-text)", "stroke-width": 1.5});
        draw(group, "line", {x1: x(q25), x2: x(q75), y1: y, y2: y, stroke: "var(--wait)", "stroke-width": 7});
        draw(group, "circle", {cx: x(q50), cy: y, r: 4.5, fill: "var(--ink)"});
        draw(group, "line", {x1: x(most), x2: x(most), y1: y - 6, y2: y + 6, stroke: "var(--wait-text)", "stroke-width": 2});
      });
      return bottom + 24;
    }, () => ({heads: [spec.label, "jobs", "at once", "killed", "25 % of the others", "half", "75 %", "95 %", "longest"], kinds: ["text", "count", "share", "share", ...Array(5).fill("time")], same: [4, 5, 6, 7, 8],
      rows: rows.map((row) => [row.name, row.jobs, row.zero, spec.killed ? row.killed : null, ...(row.quantiles.length ? row.quantiles : Array(5).fill(null))])}));
  },
  /* Cumulative curves: series [{name, role, dashed, sign, at: [[value, part], ...], reach: [[least, most, part], ...]}], from `from` to `to` at least, logarithmic. */
  cumulative(node, spec) {
    figure(node, spec, (svg, width) => {
      const left = 44, right = width - 14, top = 8, bottom = 190, x = logAxis(svg, spec.marks, spec.from, spec.to, left, right, top, bottom);
      const y = (part) => bottom - part * (bottom - top);
      for (const part of [0, 0.25, 0.5, 0.75, 1]) { draw(svg, "line", {x1: left, x2: right, y1: y(part), y2: y(part), stroke: "var(--line)"}); draw(svg, "text", {x: left - 4, y: y(part) + 4, "text-anchor": "end"}, `${100 * part} %`); }
      spec.series.forEach((one, k) => {
        const line = one.role ? `var(--${one.role})` : `var(--${CATEGORIES[k % CATEGORIES.length]})`;
        const points = one.at.map(([value, part], n) => `${n ? "H" : "M"}${n ? x(value) : `${x(value)} ${bottom} V`}${n ? ` V${y(part)}` : y(part)}`).join(" ");
        const lines = one.at.map(([value, part]) => `${x(value)} ${y(part)}`).join("L");
        const path = draw(svg, "path", {d: `${spec.joined ? `M${lines}` : points} H${right}`, fill: "none", stroke: line, "stroke-width": 2, "stroke-dasharray": one.dashed ? "6 4" : ""});
        draw(path, "title", {}, one.name);
        if (one.reach) draw(svg, "path", {d: `M${[...one.reach.map(([low,, part]) => [low, part]), ...one.reach.map(([, high, part]) => [high, part]).reverse()].map(([value, part]) => `${x(value)} ${y(part)}`).join("L")}Z`, fill: line, opacity: 0.25});
        if (one.sign) for (const part of [0.15, 0.4, 0.65, 0.9]) { const [value, at] = one.at[Math.min(Math.floor((part + 0.02 * k) * one.at.length), one.at.length - 1)]; draw(svg, "text", {x: x(value), y: y(at) + 4, "text-anchor": "middle", style: `fill:${line}`}, one.sign); }
        draw(svg, "line", {x1: left + 12, x2: left + 36, y1: bottom + 44 + 18 * k, y2: bottom + 44 + 18 * k, stroke: line, "stroke-width": 2, "stroke-dasharray": one.dashed ? "6 4" : ""});
        draw(svg, "text", {x: left + 42, y: bottom + 48 + 18 * k, class: "ink"}, `${one.sign ? `${one.sign} ` : ""}${elided(one.name, Math.floor(width / 8))}`);
      });
      draw(svg, "text", {x: (left + right) / 2, y: bottom + 32, "text-anchor": "middle"}, `${elided(spec.label, Math.floor((right - left) / 6.4) - 15)}, at most (log)`);
      return bottom + 48 + 18 * spec.series.length;
    }, () => { const parts = spec.joined ? spec.series[0].at.map(([, part]) => part) : [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1]; return {
      heads: [`${spec.label}, at most`, ...parts.map((part) => numbers.share(part))], kinds: ["text", ...parts.map(() => spec.axis)], same: parts.map((_, k) => k + 1),
      rows: spec.series.map((one) => [one.name, ...parts.map((part) => (one.at.find(([, reached]) => reached >= part - 1e-9) || one.at[one.at.length - 1])[0])])}; });
  },
  /* A matrix: {rows, columns: names, cells, sums: how many columns at the right are sums, kind, picked(row, column)}; the cell's colour is its part of the largest. */
  matrix(node, spec) {
    const whole = add(node, "figure"), caption = add(whole, "figcaption");
    add(caption, "p", spec.sentence);
    if (spec.note) add(caption, "p", spec.note, {className: "soft"});
    const [unit, texts] = numbers.column(spec.kind, spec.cells.flat()), wide = spec.cells[0]?.length || 0;
    const [grid, cut] = boxed(whole, `${spec.caption}${unit ? ` (${unit})` : ""}`, spec.plain ? "matrix plain" : "matrix");
    const head = add(add(grid, "thead"), "tr"), body = add(grid, "tbody");
    add(head, "th", spec.corner, {scope: "col"});
    spec.columns.forEach((name, c) => add(head, "th", spec.plain && c % 4 && c < wide - spec.sums ? "" : elided(name, 14), {scope: "col", className: "number", title: name}));
    const single = wide - spec.sums, most = Math.max(...spec.cells.flatMap((row) => row.slice(0, single)), 1e-300);
    spec.rows.forEach((name, r) => {
      const row = add(body, "tr");
      add(row, "th", elided(name, 20), {scope: "row", title: name});
      spec.cells[r].forEach((value, c) => {
        const cell = add(row, "td", undefined, {className: "number"}), sum = c >= single;
        if (!value) { cell.textContent = spec.plain ? "" : "·"; return; }
        cell.dataset.part = sum ? "" : value / most;
        add(cell, "button", spec.plain && !sum ? "" : texts[r * wide + c], {type: "button", tabIndex: grid.querySelector("td button") ? -1 : 0, title: `${name}, ${spec.columns[c]}: ${spec.exact(value)}`}).onclick = () => spec.picked(r, c);
      });
    });
    const paint = () => { for (const cell of grid.querySelectorAll("td[data-part]")) if (cell.dataset.part) { const back = heat(Number(cell.dataset.part)); cell.style.background = back; cell.style.color = inkOn(back); } };
    paint();
    cut();
    roving(body, "td button");
    drawings.push(paint);
    if (spec.plain) asTable(whole, () => [{caption: spec.sentence, heads: [...spec.corner.split(/ [↓→] ?/).filter(Boolean), spec.caption], kinds: ["text", "text", spec.kind], order: [2, true],
      rows: spec.rows.flatMap((name, r) => spec.cells[r].slice(0, single).map((value, c) => [name, spec.columns[c], value]).filter(([,, value]) => value))}]);
  },
};
