// Lines over time by uPlot: members told apart by colour and by dashes, with a legend that shows the values under the cursor.
import uPlot from "./vendor/uPlot.js";
import { html, useEffect, useLayoutEffect, useRef, useState, clock, commonStart, inert, short, span, useWidth } from "./lib.js";

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 5], [5, 2, 2, 2, 2, 2]];
const SPANS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000, 864000, 8640000];
const ENDED_S = 60; // of six points of a late group, none came
export const MOST_LINES = DASHES.length;
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function useDark() {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(query.matches);
  useEffect(() => { const changed = () => setDark(query.matches); query.addEventListener("change", changed); return () => query.removeEventListener("change", changed); }, []);
  return dark;
}

// lines: [{name, time_s, values}]; steps: x is a number of moves
// until: the end of the time axis, so that lines that ended earlier do not seem to reach the present
export function Chart({ title, lines, format = short, height = 160, steps = false, at = null, sync = null, until = 0 }) {
  const place = useRef(null), plot = useRef(null), end = useRef(0), width = useWidth(place), dark = useDark();
  const [cursor, setCursor] = useState(null);
  const data = lines.length ? uPlot.join(lines.map((line) => [line.time_s, line.values.map((v) => (v === null ? undefined : v))])) : null;
  const names = lines.map((line) => line.name).join("\n");
  const same = commonStart(lines.map((line) => inert(line.name)));
  end.current = until;
  useLayoutEffect(() => {
    if (!width || !data) return undefined;
    const grid = { stroke: ink("--line"), width: 1 };
    const axis = { stroke: ink("--dim"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    plot.current = new uPlot({
      width, height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 }, ...(sync ? { sync: { key: sync } } : {}) },
      scales: { x: { time: !steps, ...(steps ? {} : { range: (_, low, high) => [low, Math.max(high, end.current)] }) }, y: { range: (_, low, high) => [0, Math.max(high * 1.08, format === span ? 10 : 1)] } },
      axes: [{ ...axis, space: 70, ...(steps ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] } : { values: (_, ticks, axis, space, step) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}) })) }) }, { ...axis, size: 64, ...(format === span ? { incrs: SPANS } : {}), values: (_, ticks) => ticks.map(format) }],
      series: [{}, ...lines.map((line, n) => ({ stroke: ink(`--line${n % MOST_LINES}`), width: 2, dash: line.dash || DASHES[n % MOST_LINES], spanGaps: true, points: { show: steps && n === 0, size: 5 }, ...(steps && n === 0 ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) }))],
      hooks: { setCursor: [(u) => setCursor(u.cursor.idx ?? null)] },
    }, data, place.current);
    return () => { plot.current?.destroy(); plot.current = null; };
  }, [width, dark, names, steps, Boolean(data)]);
  useEffect(() => { if (plot.current && data) plot.current.setData(data); });
  const shown = cursor ?? (at === null ? (data ? data[0].length - 1 : 0) : at);
  const text = lines.map((line) => `${line.name}: ${format(line.values.findLast((v) => v !== null) ?? null)}`).slice(0, 8).join("; ");
  return html`<figure class="chart"><figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-label=${`${title}. Last values: ${text}`}></div>
    <ul class="legend lines">${lines.map((line, n) => html`<li key=${line.name}><svg width="28" height="8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" class=${`ink${n % MOST_LINES}`} stroke-dasharray=${(line.dash || DASHES[n % MOST_LINES]).join(" ")} /></svg><bdi class="name" title=${inert(line.name)}>${same ? `…${inert(line.name).slice(same)}` : inert(line.name, 60)}</bdi> <b>${format(data?.[n + 1]?.[shown] ?? null)}</b></li>`)}</ul></figure>`;
}

export function GroupCharts({ series, members }) {
  const names = [...members].sort((a, b) => b.lag_records - a.lag_records).map((m) => m.name).filter((name) => series.members[name]?.time_s.length > 1);
  const chosen = names.slice(0, MOST_LINES);
  const lines = (field) => chosen.map((name) => ({ name, time_s: series.members[name].time_s, values: series.members[name][field] }));
  const group = (field) => [{ name: "group", time_s: series.group.time_s, values: series.group[field] }];
  const rate = (value) => (value === null ? "–" : `${short(value)}/s`);
  const until = series.group.time_s.at(-1) || 0;
  const whole = html`<${Chart} title="Lag of the group, in records" lines=${group("lag")} until=${until} />`;
  if (!chosen.length) {
    if (series.group.time_s.length < 2) return html`<p class="dim">The worker has only begun to watch this group.</p>`;
    return html`${whole}<p class="dim">The page draws each member only while the group is late; it is not late now.</p>`;
  }
  const ended = Math.max(...chosen.map((name) => series.members[name].time_s.at(-1)));
  const chart = (title, field, format) => html`<${Chart} title=${title} lines=${lines(field)} format=${format} sync="group" until=${until} />`;
  return html`${until - ended > ENDED_S && html`${whole}<p class="dim">The page draws each member only while the group is late; it has not been late since ${clock(ended * 1000)}.</p>`}
    <div class="charts">${chart("Lag per member, in records", "lag")}${chart("Seconds behind, per member", "seconds_behind", span)}
    ${chart("Inflow per member", "inflow_per_s", rate)}${chart("Drain per member", "drain_per_s", rate)}</div>
    ${names.length > chosen.length && html`<p class="dim">The ${chosen.length} members with the most lag of ${names.length}.</p>`}`;
}
