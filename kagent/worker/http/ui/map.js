// Members × partitions: the length of a piece is its work, its shade how late it is; hatching and signs say the same without colour.
import { html, useState, Name, commonStart, count, inert, plural, short, span } from "./lib.js";

const MOST_PIECES = 48;
const ROW = 46;
const LATE_S = [1, 10, 60, 600, 3600];
const LATE_WORDS = ["on time", "1 s", "10 s", "1 min", "10 min", "1 h or more"];
export const late = (seconds) => LATE_S.filter((limit) => seconds >= limit).length;
const MARKS = [["stalled", "■", "makes no progress"], ["open_transaction", "‖", "waits for an open transaction"], ["hot", "▲", "hot: more work than a member's share"], ["lost", "✕", "records were deleted unread"]];

export const marksOf = (p) => MARKS.filter(([name]) => p[name]);

// partitions: [{topic, partition, member, to, lag, seconds, work, stalled, …}]; members: [{name, note}]
export function Map({ members, partitions, after, unit, onlyAfter }) {
  const place = (p) => (after && p.to >= 0 ? p.to : p.member);
  const any = partitions.some((p) => p.work > 0);
  const weight = (p) => (any ? p.work : 1);
  const rows = members.map((member, at) => ({ member, at, pieces: [] }));
  const nobody = { member: { name: "held by no member" }, at: -1, pieces: [] };
  for (const p of partitions) (rows[place(p)] || nobody).pieces.push(p);
  if (nobody.pieces.length) rows.push(nobody);
  for (const row of rows) {
    row.pieces.sort((a, b) => weight(b) - weight(a));
    row.total = row.pieces.reduce((sum, p) => sum + weight(p), 0);
  }
  const before = new globalThis.Map();
  for (const p of partitions) before.set(p.member, (before.get(p.member) || 0) + weight(p));
  const order = [...rows].sort((a, b) => (before.get(b.at) || 0) - (before.get(a.at) || 0));
  const most = Math.max(...before.values(), ...rows.map((r) => r.total), 1e-9);
  const moves = onlyAfter ? [] : partitions.filter((p) => p.to >= 0);
  const index = new globalThis.Map(order.map((row, at) => [row.at, at]));
  const same = commonStart(members.map((member) => inert(member.name)));
  return html`<div class="map">
    <div class="map-rows">${order.map((row) => html`<${Line} key=${row.at} row=${row} most=${most} weight=${weight} any=${any} unit=${unit} after=${after} same=${same} />`)}</div>
    ${moves.length > 0 && html`<${Arrows} moves=${moves} index=${index} rows=${order.length} weight=${weight} />`}
  </div>`;
}

function Line({ row, most, weight, any, unit, after, same }) {
  const shown = row.pieces.slice(0, MOST_PIECES), rest = row.pieces.slice(MOST_PIECES);
  const more = rest.reduce((sum, p) => sum + weight(p), 0);
  const worst = Math.max(0, ...row.pieces.map((p) => p.seconds));
  const label = `${inert(row.member.name)}: ${plural(row.pieces.length, "partition")}${any ? `, ${amount(row.total, unit)}` : ""}, at most ${span(worst)} late`;
  return html`<div class="map-row">
    <div class="map-name"><bdi class="name" title=${inert(row.member.name)}>${same && row.at >= 0 ? `…${inert(row.member.name).slice(same)}` : inert(row.member.name)}</bdi>${row.member.note && html` <abbr title=${row.member.note} aria-label=${row.member.note}>ⓘ</abbr>`}<span class="dim">${any ? amount(row.total, unit) : plural(row.pieces.length, "partition")}</span></div>
    <div class="bar" role="img" aria-label=${label}><div class="fill" style=${{ width: `${(100 * row.total) / most}%` }}>
      ${shown.map((p) => html`<${Piece} key=${`${p.topic}/${p.partition}`} p=${p} weight=${weight(p)} share=${weight(p) / most} after=${after} />`)}
      ${rest.length > 0 && html`<span class="piece rest" style=${{ flexGrow: more || 1e-6 }} title=${`${rest.length} more`}>+${rest.length}</span>`}
    </div></div></div>`;
}

function Piece({ p, weight, share, after }) {
  const marks = marksOf(p);
  const moved = p.to >= 0;
  const title = `${inert(p.topic)}-${p.partition}: ${p.lag === null ? "lag not known" : `${count(p.lag)} records`}, ${span(p.seconds)} late${marks.map((m) => `, ${m[2]}`).join("")}${moved ? (after ? ", moved here" : ", to be moved") : ""}`;
  return html`<span class=${`piece late${late(p.seconds)}${moved ? " moved" : ""}${share < 0.004 ? " tiny" : ""}`} style=${{ flexGrow: weight || 1e-6 }} title=${title}>${marks.map((m) => m[1]).join("")}${share > 0.06 ? p.partition : ""}</span>`;
}

function Arrows({ moves, index, rows, weight }) {
  const paths = new globalThis.Map();
  for (const p of moves) {
    const key = `${p.member}>${p.to}`;
    const known = paths.get(key) || { from: index.get(p.member), to: index.get(p.to), n: 0, weight: 0 };
    known.n += 1;
    known.weight += weight(p);
    paths.set(key, known);
  }
  const all = [...paths.values()].filter((a) => a.from !== undefined && a.to !== undefined);
  const most = Math.max(...all.map((a) => a.weight), 1e-9);
  const y = (at) => at * ROW + ROW / 2 + 6;
  return html`<svg class="arrows" width="64" height=${rows * ROW} viewBox=${`0 0 64 ${rows * ROW}`} preserveAspectRatio="none" role="img" aria-label=${`${plural(moves.length, "move")}, listed below`}>
    ${all.map((a) => { const reach = Math.min(60, 18 + Math.abs(a.from - a.to) * 9); return html`<path d=${`M2 ${y(a.from) - 4}C${reach} ${y(a.from)} ${reach} ${y(a.to)} 8 ${y(a.to) + 4}`} stroke-width=${1.5 + (2.5 * a.weight) / most} /><path class="tip" d=${`M2 ${y(a.to) + 4}l8 -5v10z`} />`; })}
  </svg>`;
}

export const amount = (value, unit) => (unit === "seconds" ? `${span(value)} to process its lag` : `${short(value)} records`);

export const Legend = () => html`<ul class="legend" aria-label="Legend">
  <li>length: work</li>
  ${LATE_WORDS.map((text, at) => html`<li key=${at}><span class=${`piece late${at}`} aria-hidden="true"></span>${at ? `≥ ${text}`.replace("≥ 1 h or more", "≥ 1 h") : text}</li>`)}
  ${MARKS.map(([name, sign, about]) => html`<li key=${name}><span aria-hidden="true">${sign}</span> ${about}</li>`)}
  <li><span class="piece moved late0" aria-hidden="true"></span>to be moved</li></ul>`;

// The columns of /api/v1/group as rows.
export function partitionsOf(map, unit) {
  return map.partition.map((partition, at) => ({
    topic: map.topics[map.topic[at]], partition, member: map.member[at], to: map.moves_to[at], lag: map.lag_records[at],
    seconds: map.seconds_late[at], inflow: map.inflow_per_s[at], work: map.work[at] || (unit === "records" ? map.lag_records[at] || 0 : 0),
    stalled: map.stalled[at], open_transaction: map.open_transaction[at], hot: map.hot[at], lost: map.lost_records[at] > 0,
  }));
}

export function Table({ members, partitions, most = 500, label = "Partitions" }) {
  const name = (at) => (at >= 0 ? members[at]?.name : "no member");
  const rows = [...partitions].sort((a, b) => (b.lag || 0) - (a.lag || 0)).slice(0, most);
  return html`<details><summary>The map as a table</summary><div class="scroll" tabindex="0" role="region" aria-label=${label}><table><thead><tr><th scope="col">Topic</th><th scope="col" class="number">Partition</th><th scope="col">Member</th><th scope="col" class="number">Lag</th><th scope="col" class="number">Late</th><th scope="col" class="number">Inflow /s</th><th scope="col">Remarks</th><th scope="col">Moves to</th></tr></thead>
    <tbody>${rows.map((p) => html`<tr key=${`${p.topic}/${p.partition}`}><td><${Name} of=${p.topic} /></td><td class="number">${p.partition}</td><td><${Name} of=${name(p.member)} /></td><td class="number">${count(p.lag)}</td><td class="number">${span(p.seconds)}</td><td class="number">${p.inflow === undefined ? "–" : short(p.inflow)}</td><td>${marksOf(p).map((m) => m[2]).join(", ")}</td><td>${p.to >= 0 && html`<${Name} of=${name(p.to)} />`}</td></tr>`)}</tbody></table></div>
    ${partitions.length > most && html`<p class="dim">The ${count(most)} with the most lag of ${count(partitions.length)}.</p>`}</details>`;
}
