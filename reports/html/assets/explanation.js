/* Draws the pictures of an explanation with uPlot. Colours and dashes are those of the keys beside them, so that both follow the scheme. */
"use strict";
(() => {
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const one = (selector, from = document) => from.querySelector(selector);
const sorted = values => values.every((value, at) => value !== null && (!at || values[at - 1] <= value));
const DAY = 864e5, FEW = 60;
const INCREMENTS = {
  time: [1e3, 5e3, 15e3, 30e3, ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map(n => n * 6e4), ...[1, 2, 7, 14, 28, 91, 182].map(n => n * DAY),
    ...[...Array(9).keys()].flatMap(power => [1, 2, 5].map(n => n * 10 ** power * 365 * DAY))],
  number: [...Array(13).keys()].flatMap(power => [1, 2, 5].map(n => n * 10 ** power)),
};
const parts = ms => {
  const date = new Date(ms);
  if (isNaN(date)) return [`year ${Math.round(1970 + ms / 31556952e3).toLocaleString("en")}`, ""];
  return date.toISOString().replace(/^\+0*/, "").replace(/(:00)?(\.000)?Z$/, "").split("T");
};
const instant = ms => parts(ms).filter(Boolean).join("T");
const number = value => value.toLocaleString("en");
const brief = value => value.toLocaleString("en", {notation: Math.abs(value) < 1e5 ? "standard" : "compact"});
/* Times of day, with the date where it changes: on its own line across, else before the time. */
const times = across => (_, ticks, __, ___, increment) => {
  const dates = ticks.map(tick => parts(tick)[0]), oneDay = !across && new Set(dates).size === 1;
  return ticks.map((tick, at) => {
    const [date, time] = parts(tick);
    if (increment >= DAY || !time) return date;
    if (oneDay) return time;
    if (!across) return `${date.slice(-5)} ${time}`;
    return dates[at - 1] === date ? time : `${time}\n${date}`;
  });
};
const look = name => getComputedStyle(document.documentElement).getPropertyValue(name);
const axis = (of, more) => ({stroke: () => look("--quiet"), grid: {stroke: () => look("--rule"), width: 1}, ticks: {stroke: () => look("--rule"), width: 1},
  font: "12px system-ui, sans-serif", incrs: INCREMENTS[of], ...more});
const padded = (least, share) => (_, low, high) => {
  const by = Math.max((high - low) * share, least);
  return low === null ? [0, 1] : [low - by, high + by];
};
const fromZero = (_, __, high) => [0, Math.max(high || 0, 1) * 1.08];
const line = item => {
  const style = getComputedStyle(one("line", item));
  return {stroke: style.stroke, width: parseFloat(style.strokeWidth), fill: style.fill === "none" ? undefined : style.fill,
    dash: style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map(parseFloat)};
};
const series = (item, more) => ({label: item.textContent, stroke: () => line(item).stroke, fill: () => line(item).fill, width: line(item).width,
  dash: line(item).dash, points: {show: false}, ...more});
const charts = [];
const PAPER = 660;
let onPaper = false;

/* A vertical line with a word at a place across. */
const marked = (u, at, word) => {
  const x = Math.round(u.valToPos(at, "x", true)), {left, top, width, height} = u.bbox, context = u.ctx;
  if (x < left || x > left + width) return;
  context.save();
  context.strokeStyle = context.fillStyle = look("--quiet");
  context.setLineDash([4, 4].map(length => length * devicePixelRatio));
  context.beginPath(); context.moveTo(x, top); context.lineTo(x, top + height); context.stroke();
  context.font = `${12 * devicePixelRatio}px system-ui, sans-serif`; context.textBaseline = "top";
  context.textAlign = x > left + width / 2 ? "right" : "left";
  context.fillText(word, x + (x > left + width / 2 ? -4 : 4) * devicePixelRatio, top + 2);
  context.restore();
};

const draw = (holder, name, options, data) => {
  holder.setAttribute("role", "img"); holder.setAttribute("aria-label", name);
  const chart = new uPlot({width: holder.clientWidth, legend: {show: false}, ...options}, data, holder);
  charts.push([chart, holder]);
  new ResizeObserver(() => onPaper || holder.clientWidth === chart.width || chart.setSize({width: holder.clientWidth, height: chart.height})).observe(holder);
  return chart;
};

const overTime = (section, data, key) => {
  const ordered = sorted(data.batches), clocked = data.clock.length && sorted(data.clock);
  const xs = {batches: ordered ? data.batches : data.batches.map((_, at) => at), clock: data.clock};
  const controls = one("[data-controls]", section), across = one("[data-across]", section), said = one("[data-at]", section);
  const farAway = data.values.some((values, at) => one(`[data-panel="event time"] [data-line="${at}"]`, section) && values.some(value => value > 2.5e14));
  let mode = "batches";
  const place = at => [`micro-batch ${number(data.batches[at])}`, ...(data.clock[at] === null ? [] : [instant(data.clock[at])])].join(", ");
  const own = all("[data-panel]", section).map(figure => {
    const items = all("[data-line]", figure), ofTime = figure.dataset.panel === "event time", dropped = figure.dataset.panel === "dropped";
    const shown = ofTime ? instant : number, lines = items.map(item => data.values[item.dataset.line]);
    const still = lines.map(values => {
      const known = values.filter(value => value !== null), low = known.reduce((a, b) => Math.min(a, b)), high = known.reduce((a, b) => Math.max(a, b));
      return low === high ? shown(low) : ofTime ? `${shown(known[0])} → ${shown(known.at(-1))}` : `${shown(low)}–${shown(high)}`;
    });
    const said_of = items.map((item, at) => { const value = one("[data-value]", item); value.textContent = still[at]; return value; });
    const drawn = data.batches.length <= FEW ? {show: true, size: 5} : {show: false};
    const paths = item => dropped ? uPlot.paths.bars({size: [.6, 40, 2]}) : item.dataset.label === "watermark" || figure.dataset.panel === "state" ? uPlot.paths.stepped({align: 1}) : undefined;
    if (dropped && still[0] === "0") return;
    const chart = draw(one("[data-plot]", figure), `${one("figcaption", figure).textContent}: ${items.map((item, at) => `${item.dataset.label} ${still[at]}`).join("; ")}`, {
      height: ofTime ? 300 : 170,
      cursor: {sync: {key}, drag: {x: true, y: false}, y: false, points: {show: !dropped}},
      scales: {x: {time: false, range: (u, low, high) => padded(mode === "clock" ? 1e3 : .5, .01)(u, low, high)}, y: {range: ofTime ? padded(6e4, .06) : fromZero}},
      axes: [axis("number", {space: () => mode === "clock" ? 70 : 44, size: () => mode === "clock" ? 42 : 26, incrs: (u) => INCREMENTS[mode === "clock" ? "time" : "number"],
        values: (u, ticks, ...more) => mode === "clock" ? times(true)(u, ticks, ...more) : ticks.map(tick => ordered ? brief(tick) : data.batches[tick] ?? "")}),
        axis(ofTime ? "time" : "number", {size: farAway ? 112 : 88, values: ofTime ? times(false) : (_, ticks) => ticks.map(brief)})],
      series: [{}, ...items.map(item => series(item, {paths: paths(item), spanGaps: ofTime, points: dropped ? {show: false} : drawn}))],
      hooks: {draw: [u => data.restarts.forEach(at => marked(u, u.data[0][at], ofTime ? "restart" : ""))],
        setCursor: [u => { const at = u.cursor.idx;
          said.textContent = at == null ? "" : place(at);
          said_of.forEach((value, n) => value.textContent = at == null ? still[n] : lines[n][at] == null ? "–" : shown(lines[n][at])); }]},
    }, [xs.batches, ...lines.map(values => dropped ? values.map(value => value || undefined) : values)]);
    return chart;
  }).filter(Boolean);
  if (!own.length) return;
  controls.hidden = one("[data-zoom-help]", section).hidden = false;
  across.parentElement.hidden = !clocked;
  across.addEventListener("change", () => { mode = across.value; own.forEach(chart => chart.setData([xs[mode], ...chart.data.slice(1)])); });
  const range = (low, high) => own.forEach(chart => chart.setScale("x", {min: low, max: high}));
  controls.addEventListener("click", event => {
    const {min, max} = own[0].scales.x, span = max - min, by = {in: [.25, -.25], out: [-.5, .5], earlier: [-.5, -.5], later: [.5, .5]}[event.target.dataset.zoom];
    if (by) range(min + by[0] * span, max + by[1] * span);
    else if (event.target.dataset.zoom) own.forEach(chart => chart.setData(chart.data));
  });
  const numbers = one("[data-numbers]", section);
  numbers.hidden = false;
  numbers.addEventListener("toggle", () => {
    const table = one("table", numbers);
    if (table.rows.length) return;
    const row = (into, kind, texts) => { const made = into.insertRow(); for (const text of texts) { const cell = document.createElement(kind); cell.textContent = text; made.append(cell); } };
    const labels = all("[data-line][data-label]", section), withClock = data.clock.some(at => at !== null);
    row(table.createTHead(), "th", ["micro-batch", ...(withClock ? ["clock time"] : []), ...labels.map(item => item.dataset.label)]);
    const body = table.createTBody();
    data.batches.forEach((batch, at) => row(body, "td", [number(batch), ...(withClock ? [data.clock[at] === null ? "" : instant(data.clock[at])] : []), ...labels.map(item => {
      const value = data.values[item.dataset.line][at];
      return value === null ? "" : item.closest("[data-panel]").dataset.panel === "event time" ? instant(value) : number(value);
    })]));
  });
};

const byDelay = (section, {delays, rows, rowsOfFile, ownMs, labels}) => {
  const figure = one("[data-delays]", section), holder = one("[data-plot]", figure), [kept, state] = all("[data-line]", figure);
  const across = delays.map(delay => delay.delayMs), scaled = across.map(delay => Math.asinh(delay / 6e4)), width = Math.max(...scaled) - Math.min(...scaled) || 1;
  /* The delay that keeps all rows is the last: where there is no room for every label, it has its own. */
  const place = at => (scaled[at] - scaled[0]) / width * (holder.clientWidth - 130);
  const ticks = () => across.reduceRight((kept, delay, at) => kept.length && place(across.indexOf(kept[0])) - place(at) < 84 ? kept : [delay, ...kept], []);
  const dropped = delay => rowsOfFile ? delay.rowsDroppedOfFile / rowsOfFile : delay.rowsDropped / rows;
  const own = delays.find(delay => delay.delayMs === ownMs), keeping = delays.find(delay => !dropped(delay));
  const share = delay => (1 - dropped(delay)) * 100, percent = value => `${+value.toFixed(3)}%`;
  draw(holder, `Rows kept: ${percent(share(own))} with the delay now${keeping ? `, all with ${labels[delays.indexOf(keeping)].join(", results ")}` : ""}`, {
    height: 220, cursor: {y: false, drag: {x: false}},
    scales: {x: {time: false, distr: 4, asinh: 6e4, range: (_, low, high) => [low, high === low ? low + 6e4 : high]}, y: {range: (_, low) => [Math.floor(low - (100 - low) * .1), 100]}, state: {range: fromZero}},
    axes: [axis("number", {size: 42, splits: ticks, filter: (_, at) => at, values: (_, at) => at.map(delay => labels[across.indexOf(delay)].join("\n"))}), axis("number", {size: 64, values: (_, at) => at.map(percent), incrs: [.001, .01, .1, .5, 1, 2, 5, 10, 20, 50]}),
      axis("number", {scale: "state", side: 1, size: 58, grid: {show: false}, values: (_, at) => at.map(brief)})],
    series: [{}, series(kept, {points: {show: true, size: 6}}), series(state, {scale: "state", points: {show: true, size: 6}})],
    hooks: {draw: [u => marked(u, ownMs, "now")]},
  }, [across, delays.map(share), delays.map(delay => delay.stateRows)]);
};

const filter = form => {
  const rows = all("tbody tr", form.parentElement), [treatment, text, said] = [one("select", form), one("input", form), one("[role=status]", form)];
  const apply = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = rows.filter(row => {
      const row_text = row.textContent.toLowerCase();
      row.hidden = treatment.value && row.cells[2].textContent !== treatment.value || !words.every(word => row_text.includes(word));
      return !row.hidden;
    });
    said.textContent = `${number(kept.length)} of ${number(rows.length)} rows`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  apply();
};

const data = JSON.parse(one("[data-pictures]").textContent);
all("[data-query]").forEach((section, at) => {
  if (data[at].delays) byDelay(section, data[at].delays);
  overTime(section, data[at], `query ${at}`);
});
all("[data-filter]").forEach(filter);
const redraw = () => charts.forEach(([chart]) => chart.redraw(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
/* Paper is white and as wide as it is, whatever the window. */
const toPaper = on => {
  onPaper = on;
  document.documentElement.classList.toggle("paper", on);
  for (const [chart, holder] of charts) chart.setSize({width: on ? PAPER : holder.clientWidth, height: chart.height});
  redraw();
};
addEventListener("beforeprint", () => toPaper(true));
addEventListener("afterprint", () => toPaper(false));
matchMedia("print").addEventListener("change", event => toPaper(event.matches));
})();
