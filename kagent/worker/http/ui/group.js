// One group: what to do, where its work lies, how it came to be, and what could be.
import { html, useContext, useState, useLive, href, Ago, AsOf, Behind, Breakable, Old, asOf, Condition, CopyButton, Loading, Name, Verdict, actionWords, clock, count, inert, plural, short, span, words } from "./lib.js";
import { GroupCharts } from "./charts.js";
import { Legend, Map, Table, amount, marksOf, partitionsOf } from "./map.js";
import { WhatIf } from "./whatif.js";

export function Group({ params, status }) {
  const names = { group: params.get("group") || "", ...(params.get("cluster") ? { cluster: params.get("cluster") } : {}) };
  const allOld = useContext(Old);
  const query = new URLSearchParams(names).toString();
  const { data, error, status: code } = useLive(`api/v1/group?${query}`);
  const { data: series } = useLive(`api/v1/group/series?${query}`);
  if (!data) return error ? html`<h1><${Name} of=${names.group} /></h1><p class="notice" role="alert">${error} ${code === 404 && html`<a href=${href("groups", { search: names.group })}>Search for it</a>`}</p>` : html`<h1><${Name} of=${names.group} /></h1><${Loading} />`;
  const { row } = data;
  const partitions = partitionsOf(data.map, data.work_unit);
  const old = allOld || (error ? data.time_ms : 0);
  return html`<${Old.Provider} value=${old}><p class="crumbs"><a href=${href("groups")}>Groups</a> / <${Name} of=${row.cluster} /></p>
    <h1><${Name} of=${row.group} /></h1>
    <${Head} data=${data} />
    <${Recommendation} data=${data} />
    <section aria-labelledby="map"><h2 id="map">Work of each member</h2><${Work} data=${data} partitions=${partitions} /></section>
    <section aria-labelledby="time"><h2 id="time">The last hour</h2>${series ? html`<${GroupCharts} series=${series} members=${data.members} />` : html`<${Loading} />`}</section>
    <section aria-labelledby="members"><h2 id="members">Members</h2><${Members} data=${data} partitions=${partitions} /></section>
    <section aria-labelledby="past"><h2 id="past">What happened</h2><${Timeline} events=${data.timeline} /></section>
    <section aria-labelledby="whatif"><h2 id="whatif">What if</h2><${WhatIf} key=${`${row.cluster}/${row.group}`} row=${row} members=${data.members} partitions=${partitions} /></section>
    <section aria-labelledby="story"><h2 id="story">The whole explanation</h2><details><summary>As <code>kagent explain</code> prints it</summary><pre class="story" tabindex="0">${data.story.join("\n")}</pre></details></section><//>`;
}

function Head({ data }) {
  const { row } = data, old = useContext(Old);
  const facts = [words(row.kind), row.state, data.protocol && inert(data.protocol), data.generation !== null && `generation ${data.generation}`, plural(row.member_count, "member"), row.owner && `owner ${inert(row.owner)}`];
  return html`<div class="head"><${Condition} row=${row} /> <${Verdict} of=${row.verdict} blind=${row.blind} /> <span class="dim">${facts.filter(Boolean).join(" · ")}</span></div>
    <dl class="tiles"><div><dt>behind</dt><dd><${Behind} row=${row} /></dd></div><div><dt>lag</dt><dd title=${count(row.lag_records)}>${short(row.lag_records)}<${AsOf} row=${row} /></dd></div><div><dt>skew</dt><dd>${row.skew === null ? "–" : row.skew.toFixed(2)} <small class="dim">threshold ${data.threshold}</small></dd></div></dl>
    ${old > 0 && html`<p class="notice" role="alert">The data below are ${asOf(old)}: the worker has sent nothing since, so the present state is not known.</p>`}
    ${row.blind && html`<div class="trouble" role="alert"><span class="trouble-sign" aria-hidden="true">⊘</span><p><strong>kagent is blind to this group: ${row.blind}.</strong><br />The numbers below are as they were when its commits were last known. No incident of the group opens or resolves until kagent sees it again.</p></div>`}
    ${row.muted_until_ms && html`<p class="notice">Muted until ${clock(row.muted_until_ms)}.</p>`}`;
}

const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

function Recommendation({ data }) {
  const { row } = data, open = Boolean(row.incident), old = useContext(Old);
  const stated = open ? data.recommendation : data.draft;
  const superseded = stated?.status === "superseded";
  // Nothing of it is to be done any more: a record that has been passed must not be skipped.
  const r = superseded ? { ...stated, actions: [], moves: [], move_count: 0, alternatives: [] } : stated;
  if (!r && row.no_members && !row.blind && !old) return html`<section class="recommendation draft" aria-label="Recommendation"><p class="headline"><span aria-hidden="true">○</span> Nobody reads this group's partitions</p><p class="reason big">${sentence(inert(row.no_members, 500))}</p></section>`;
  if (!r && row.not_opened && !row.blind && !old) return html`<section class="recommendation draft" aria-label="Recommendation"><p class="headline"><span aria-hidden="true">○</span> Not reported (yet)</p><p class="reason big">${inert(row.not_opened, 500)}.</p></section>`;
  if (!r) return row.blind || old ? null : html`<section class="calmbox" aria-label="Recommendation"><p class="headline"><span aria-hidden="true">✓</span> Nothing to do</p><p>No member is known to be behind. kagent judged ${plural(data.map.partition.length, "partition")} on ${plural(data.members.length, "member")} <${Ago} ms=${data.time_ms} />.</p>${data.recommendation && html`<${Last} r=${data.recommendation} />`}</section>`;
  // What the plan would give is not what another first action gives.
  const plan = r.actions[0]?.type === "follow_plan" && r.skew.after !== null && r.skew.after < r.skew.now;
  return html`<section class=${`recommendation ${open ? r.severity : "draft"}`} aria-labelledby="rec"><h2 id="rec">${open ? "Recommendation" : "Not published (yet)"}</h2>
    ${!open && row.not_opened && html`<p class="notice">Why not: ${inert(row.not_opened, 500)}.</p>`}
    ${superseded && html`<p class="notice">This advice no longer applies: the group has changed since, or works off what is left. Do not act on it any more.</p>`}
    <p class="reason big">${inert(r.reason, 2000)}</p>
    <p class="dim">${open && html`opened <${Ago} ms=${r.opened_at} /> · `}as of ${clock(r.as_of)} · confidence ${r.confidence}${plan ? ` · skew ${r.skew.now?.toFixed(2)} → ${r.skew.after.toFixed(2)}` : ""}${r.move_count ? ` · ${plural(r.move_count, "move")}` : ""}${r.runbook_url && /^https?:\/\//.test(r.runbook_url) ? html` · <a href=${r.runbook_url} rel="noreferrer noopener">runbook</a>` : ""}</p>
    ${r.actions.length > 0 && html`<ol class="actions">${r.actions.map((a, at) => html`<${Action} key=${at} a=${a} row=${row} place=${at + 1} />`)}</ol>`}
    ${r.moves.length > 0 && html`<details><summary>${plural(r.move_count || r.moves.length, "move")}</summary><ul class="plain">${r.moves.map((m) => html`<li><${Name} of=${`${m.topic}-${m.partition}`} />: <${Name} of=${m.from ?? "no member"} /> → <${Name} of=${m.to} />${m.lag ? ` (${count(m.lag)} records)` : ""}</li>`)}</ul></details>`}
    ${r.alternatives.length > 0 && html`<details><summary>What each strategy would give</summary><table><thead><tr><th scope="col">Strategy</th><th scope="col" class="number">Skew</th><th scope="col" class="number">Moves</th><th scope="col">Feasible</th></tr></thead><tbody>${r.alternatives.map((a) => html`<tr><th scope="row">${inert(a.strategy)}</th><td class="number">${a.skew === null ? "–" : a.skew.toFixed(2)}</td><td class="number">${count(a.moves)}</td><td>${a.unsafe ? `must not be used: ${inert(a.unsafe)}` : a.feasible}</td></tr>`)}</tbody></table></details>`}
    <p><${CopyButton} text=${`kagent explain ${quoted(row.group)}`} label="Copy: kagent explain" /></p></section>`;
}

const MOST_REMARKS = 3;
const quoted = (name) => (/^[\w.:-]+$/.test(name) ? name : `'${inert(name).replaceAll("'", "'\\''")}'`);

// The exact commands and settings of an action, in their order. By its type, and not by what looks like one: sentences name
// clients, which may call themselves anything.
const SETTINGS = /[\w.]+=(?:\[[^\]]*\]|[^\s;]*[^\s;,.])/g, TOOL = /kafka-[\w-]+\.sh .*$/g, TOOLS = /kafka-[\w-]+\.sh .*?(?= ; if |$)/g;
const EXACT = {
  switch_assignor: SETTINGS, set_member_count: SETTINGS, raise_parallelism: SETTINGS, skip_or_fix_record: TOOL, add_partitions_or_rekey: TOOL, abort_transaction: TOOLS,
};
function exact(a, { group, cluster }) {
  if (a.type === "follow_plan") {
    if (a.how.includes("`kagent assignor --consumer`")) return ["kagent assignor --consumer"];
    return a.how.includes("`kagent apply") ? [...(a.how.includes("`kagent assignor`") ? ["kagent assignor"] : []), `kagent apply ${quoted(group)} ${inert(a.params.options ?? `--cluster ${quoted(cluster)}`, 2000)}`] : [];
  }
  const found = EXACT[a.type] ? [...new Set([...a.how.matchAll(EXACT[a.type])].map(([text]) => text))] : [];
  return found.some((text) => text.includes("<")) ? [] : found; // "<the present one>" is to be filled in by a person
}
function Copies({ a, row }) {
  const found = exact(a, row);
  const label = EXACT[a.type] === SETTINGS ? "Copy the setting" : "Copy the command";
  if (found.length < 2) return html`<${CopyButton} text=${found[0] ?? a.how} label=${found.length ? label : "Copy the sentence"} />`;
  return html`<ul class="plain copies">${found.map((text) => html`<li key=${text}><code>${inert(text, 2000)}</code> <${CopyButton} text=${text} label=${label} /></li>`)}</ul>`;
}

const FEASIBLE = { yes: ["✓", "can be done"], no: ["✗", "cannot be done here"], unknown: ["?", "not known whether it can be done"] };
function Action({ a, row, place }) {
  const [sign, about] = FEASIBLE[a.feasible];
  const drains = typeof a.gain.after === "number" ? `drains within ${span(a.gain.after)}` : typeof a.gain.likely === "number" ? `may drain in ${span(a.gain.likely)}` : null;
  const gain = drains && `${drains}${a.gain.now ? ` instead of ${span(a.gain.now)}` : ""}`;
  const price = [a.disruption.partitions && plural(a.disruption.partitions, "partition move"), a.disruption.pause_s && `pause ${span(a.disruption.pause_s)}`];
  const facts = [gain, a.durable ? "outlasts the next rebalance" : null, ...price].filter(Boolean);
  return html`<li class=${`action ${a.feasible}`}><div><strong>${place}. ${actionWords(a)}</strong> <span class=${`badge ${a.feasible}`}><span aria-hidden="true">${sign}</span> ${about}</span></div>
    <p><${Breakable} text=${a.how} /></p>${a.reason && html`<p class="dim">${inert(a.reason, 1000)}</p>`}${facts.length > 0 && html`<p class="dim">${facts.join(" · ")}</p>`}<${Copies} a=${a} row=${row} /></li>`;
}

function Last({ r }) {
  const o = r.outcome || {};
  const drain = typeof o.predicted_drain_s === "number" && typeof o.measured_drain_s === "number" ? ` Drained in ${span(o.measured_drain_s)}, predicted ${span(o.predicted_drain_s)}.` : "";
  return html`<p class="dim">Last incident: ${words(r.verdict)}, ${r.resolution ? words(r.resolution) : r.status} <${Ago} ms=${r.as_of} />.${drain}</p>`;
}

function Work({ data, partitions }) {
  const [after, setAfter] = useState(false);
  const moves = partitions.some((p) => p.to >= 0);
  const members = data.members.map((m) => ({ name: m.name, note: m.evidence }));
  if (!partitions.length) return html`<p class="dim">No partition of this group is known.</p>`;
  return html`${moves && html`<fieldset class="switch"><legend class="offscreen">Show the assignment</legend>${[[false, "now"], [true, "after the moves"]].map(([value, text]) => html`<label><input type="radio" name="after" checked=${after === value} onChange=${() => setAfter(value)} /> ${text}</label>`)}</fieldset>`}
    <${Map} members=${members} partitions=${partitions} after=${moves && after} unit=${data.work_unit} /><${Legend} /><${Table} members=${members} partitions=${partitions} />`;
}

// From the map, so that both are of now: the recommendation foretold what comes of the work of its time.
function workBy(partitions, holder) {
  const work = {};
  for (const p of partitions) work[holder(p)] = (work[holder(p)] || 0) + p.work;
  return (at) => work[at] || 0;
}

// What was measured of the member, then what is marked on the map.
function remarks(member, partitions) {
  const marked = partitions.filter((p) => p.member === member.at).flatMap((p) => marksOf(p).map(([, sign, about]) => `${sign} ${p.topic}-${p.partition} ${about}`));
  const more = marked.length > MOST_REMARKS ? [`and ${marked.length - MOST_REMARKS} more on the map`] : [];
  return [member.evidence, ...marked.slice(0, MOST_REMARKS), ...more].filter(Boolean).map((text) => inert(text));
}

function Members({ data, partitions }) {
  if (!data.members.length) return html`<p class="dim">The group has no members now.</p>`;
  const now = workBy(partitions, (p) => p.member), moved = partitions.some((p) => p.to >= 0), after = workBy(partitions, (p) => (p.to >= 0 ? p.to : p.member));
  const works = (value) => (data.work_unit === "seconds" ? span(value) : amount(value, data.work_unit));
  const rows = data.members.map((m, at) => ({ ...m, at })).sort((a, b) => now(b.at) - now(a.at) || b.lag_records - a.lag_records);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of the members"><table><thead><tr><th scope="col">Member</th><th scope="col" class="number">Partitions</th><th scope="col" class="number">Lag</th><th scope="col" class="number">Behind</th><th scope="col" class="number">Inflow /s</th><th scope="col" class="number">${moved ? "Work → after the moves" : "Work"}</th><th scope="col" class="number">Speed</th><th scope="col">Remarks</th><th scope="col">Client and host</th></tr></thead>
    <tbody>${rows.map((m) => html`<tr key=${m.member_id}><th scope="row"><${Name} of=${m.name} /></th><td class="number">${m.partitions}</td><td class="number">${count(m.lag_records)}</td><td class="number">${m.known ? span(m.seconds_behind) : "not known"}</td><td class="number">${short(m.inflow_per_s)}</td><td class="number">${works(now(m.at))}${moved ? ` → ${works(after(m.at))}` : ""}</td><td class="number">${m.speed === null ? "–" : m.speed.toFixed(2)}</td><td>${remarks(m, partitions).map((text) => html`<div>${text}</div>`)}</td><td class="dim"><${Name} of=${m.client_id} /> <${Name} of=${m.host} /></td></tr>`)}</tbody></table></div>`;
}

const SIGN = { first_seen: "◇", confirmed: "◈", opened: "▲", updated: "↻", superseded: "↷", followed: "➤", resolved: "✓", rebalanced: "⇄" };
function Timeline({ events }) {
  if (!events.length) return html`<p class="dim">This worker remembers no event of the group.</p>`;
  return html`<ol class="timeline">${[...events].reverse().map((e) => html`<li key=${`${e.time_ms}${e.what}`} class=${e.what}><time datetime=${new Date(e.time_ms).toISOString()}>${clock(e.time_ms)}</time> <span class="what"><span aria-hidden="true">${SIGN[e.what] || "·"}</span> ${words(e.what)}</span> <span>${e.text}</span></li>`)}</ol>`;
}
