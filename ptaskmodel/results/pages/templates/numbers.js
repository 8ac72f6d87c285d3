"use strict";
/* Numbers, units and dates as texts, by the same cases as those of Python (tests/numbers.json).
   Values are in SI: s, bytes, bytes/s, flop/s, J, W; shares are parts of 1. */
const numbers = (() => {
const THIN = "\u202f", MINUS = "−", UNKNOWN = "–";
const MINUTE = 60, HOUR = 3600, DAY = 86400;
const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const prefixed = (unit, factor = 1) => PREFIXES.map(([scale, prefix]) => [scale / factor, prefix + unit]);
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const ENERGIES = [[3.6e9, "MWh"], [3.6e6, "kWh"], [3.6e3, "Wh"]];
const UNITS = {bytes: prefixed("B"), rate: prefixed("bit/s", 8), work: prefixed("flop/s"), power: prefixed("W").slice(2)};
const grouped = (text) => text.replace(/^\d{4,}/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, THIN));
const missing = (x) => x === null || x === undefined || Number.isNaN(x);
const signed = (x, text) => x < 0 && /[1-9]/.test(text) ? MINUS + text : text;
const rounded = (x) => Number(x.toPrecision(3));
/* Three digits, but all of those before the point. */
function number(x) {
  if (missing(x)) return UNKNOWN;
  const size = Math.abs(x);
  if (size >= 999.5) return signed(x, grouped(size.toFixed(0)));
  if (size && (size < 1e-3 || size >= 1e15)) { const [digits, power] = size.toExponential(2).split("e"); return signed(x, `${Number(digits)}e${Number(power)}`); }
  return signed(x, String(rounded(size)));
}
/* [scale, name] of the unit in which a value has at least one digit before the point. */
const unitOf = (units, x) => units.find(([scale]) => rounded(Math.abs(x)) >= scale * (1 - 1e-9)) || units[units.length - 1];
const withUnit = (units, x) => { const [scale, name] = unitOf(units, x); return `${number(x / scale)} ${name}`; };
const scaled = (kind) => (x) => missing(x) ? UNKNOWN : x ? withUnit(UNITS[kind], x) : `0 ${UNITS[kind][UNITS[kind].length - 1][1]}`;
function duration(x) {
  if (missing(x)) return UNKNOWN;
  if (!x) return "0 s";
  if (x < 0) return MINUS + duration(-x);
  if (rounded(x) < 120) return withUnit(TIMES, x);
  const minutes = Math.floor(x / MINUTE + 0.5);
  if (minutes < 120) return `${minutes} min`;
  const [whole, part, names] = minutes < 48 * 60 ? [minutes, 60, ["h", "min"]] : [Math.floor(minutes / 60 + 0.5), 24, ["d", "h"]];
  return `${number(Math.floor(whole / part))} ${names[0]}` + (whole % part ? ` ${whole % part} ${names[1]}` : "");
}
const share = (x) => missing(x) ? UNKNOWN : `${number(100 * x)} %`;
const energy = (x) => missing(x) ? UNKNOWN : x ? withUnit(ENERGIES, x) : "0 kWh";
const change = (x) => missing(x) ? UNKNOWN : (x > 0 ? "+" : "") + number(x);
const p = (x) => x < 0.001 ? "p < 0.001" : `p = ${number(Number(x.toFixed(3)))}`;
const count = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
/* [scale, name] of the unit of a column of a kind, from the median of what is not 0; no column shows 10 000 s, min or h. */
function columnUnit(kind, values) {
  const sizes = values.filter((x) => !missing(x) && x).map(Math.abs).sort((a, b) => a - b), n = sizes.length;
  const median = n ? (sizes[(n - 1) >> 1] + sizes[n >> 1]) / 2 : 0;
  const fits = ([scale]) => scale < 1 || scale === DAY || !(sizes[n - 1] >= 1e4 * scale), units = [timeUnit(median), TIMES[0], [MINUTE, "min"], [HOUR, "h"], [DAY, "d"]];
  const unit = kind === "share" ? [0.01, "%"] : kind === "time" ? units.find(fits) : kind === "energy" ? unitOf(ENERGIES, median || 3.6e6)
    : UNITS[kind] ? unitOf(UNITS[kind], median) : [1, ""];
  return [unit, median / unit[0], +(kind === "time" && unit[0] !== timeUnit(median)[0])];
}
const timeUnit = (x) => !x ? TIMES[0] : x < 120 ? unitOf(TIMES, x) : x < 7200 ? [MINUTE, "min"] : x < 48 * HOUR ? [HOUR, "h"] : [DAY, "d"];
/* [unit, how a value is written] of a column: one unit, and as many decimals everywhere as its median has of three digits,
   but not more than its largest value has of four, unless its unit is longer than that of the median: then one. */
function format(kind, values) {
  const [[scale, name], median, least] = columnUnit(kind, values);
  const whole = kind === "count" || values.every((x) => missing(x) || Math.abs(x / scale - Math.round(x / scale)) < 1e-9);
  const largest = values.reduce((most, x) => missing(x) ? most : Math.max(most, Math.abs(x / scale)), 0);
  const decimals = whole ? 0 : Math.min(Math.max(Math.min(2 - Math.floor(Math.log10(median)), 3 - Math.floor(Math.log10(largest))), least), 3);
  return [name, (x) => missing(x) ? UNKNOWN : signed(x, grouped(Math.abs(x / scale).toFixed(decimals)))];
}
/* [unit, texts] of a column. */
function column(kind, values) {
  const [name, text] = format(kind, values);
  return [name, values.map(text)];
}
/* A date, s since the begin of a run that takes `span`; epoch: the Unix second of its begin, if known. */
function date(x, span, epoch) {
  if (missing(x)) return UNKNOWN;
  const two = (n) => String(n).padStart(2, "0");
  if (!missing(epoch)) {
    const at = new Date(1000 * (epoch + x)), names = at.toUTCString().split(" ");
    return `${names[0].slice(0, 3)} ${at.getUTCDate()} ${names[2]} ${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
  }
  if (span < 7200) return duration(x);
  const minutes = Math.floor(x / MINUTE + 0.5), clock = (m) => `${Math.floor(m / 60)}:${two(m % 60)}`;
  return span < 48 * HOUR ? clock(minutes) : `day ${Math.floor(minutes / 1440) + 1}, ${clock(minutes % 1440)}`;
}
const STEPS = [1, 2, 5, 10, 15, 30].flatMap((k) => [k, k * MINUTE]).concat([1, 2, 6, 12].map((k) => k * HOUR), [DAY]).sort((a, b) => a - b);
/* A round step of numbers of which at most about `most` fit into a span. */
function step(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((one) => one >= rough * (1 - 1e-9));
}
function multiples(by, from, to) {
  const found = [];
  for (let k = Math.ceil(from / by - 1e-9); k * by <= to * (1 + 1e-9); k++) found.push(Number((k * by).toPrecision(12)));
  return found;
}
/* A round step of time, s. */
function timeStep(span, most) {
  const rough = span / most;
  return rough < 1 ? step(span, most) : rough > DAY ? DAY * step(span / DAY, most) : STEPS.find((one) => one >= rough * (1 - 1e-9));
}
/* [unit, ticks in this unit, its seconds] of an axis of time. */
function ticks(from, to, most) {
  const by = timeStep(to - from, most);
  const [scale, name] = by < 1 ? unitOf(TIMES, to > 100 * by ? by : Math.max(by, Math.min(10 * by, to))) : by < MINUTE ? TIMES[0] : by < HOUR ? [MINUTE, "min"] : by < DAY ? [HOUR, "h"] : [DAY, "d"];
  return [name, multiples(by / scale, from / scale, to / scale), scale];
}
/* [[date, its text], ...] for an axis of a run's time, `room` pixels wide; span, epoch: as of `date`. */
function dates(from, to, room, span, epoch) {
  const named = span >= 7200 || !missing(epoch), since = missing(epoch) ? 0 : epoch % DAY;
  // Where there is little room, only the first mark and midnight have a date.
  const narrow = !missing(epoch) && room < 300;
  const [unit, marks, scale] = ticks(from + since, to + since, room / (narrow ? 65 : missing(epoch) ? 100 : 130));
  const text = (mark) => named ? date(mark * scale - since, span, epoch) : `${number(mark)} ${unit}`;
  const shown = (mark) => unit === "d" || narrow ? text(mark).replace(/,? 0?0:00$/, "") : text(mark);
  return marks.map((mark, k) => [mark * scale - since, narrow && k ? shown(mark).replace(/.* (?=\d+:)/, "") : shown(mark)]);
}
return {dates, number, duration, share, bytes: scaled("bytes"), rate: scaled("rate"), work: scaled("work"), power: scaled("power"), energy, change, p, count, format, column, date, ticks,
  time: duration, step, multiples, timeStep, missing, UNKNOWN};
})();
