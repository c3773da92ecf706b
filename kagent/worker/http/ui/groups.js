// All groups, the most urgent first; filters are part of the address, so that a view can be sent to somebody.
import { html, useState, useEffect, useRef, useLive, here, href, go, groupHref, AsOf, Behind, CONDITIONS, Condition, Loading, Muted, Name, Spark, Verdict, count, short, words } from "./lib.js";

const PAGE = 100;
const TYPING_MS = 200;
const LABELS = { condition: "State", verdict: "Verdict", owner: "Owner", state: "Coordinator's state", cluster: "Cluster" };

export function Groups({ params }) {
  const asked = Object.fromEntries([...params].filter(([name]) => name in LABELS || name === "search" || name === "offset"));
  const query = new URLSearchParams({ ...asked, limit: PAGE }).toString();
  const { data, error } = useLive(`api/v1/groups?${query}`);
  const last = useRef(null);
  if (data) last.current = data;
  const shown = data || last.current;
  const refused = error && error !== "The worker does not answer.";
  // From the address of that moment: a search that was still being typed must not undo a filter set meanwhile.
  const set = (change) => { if (here().page === "groups") go(href("groups", { ...Object.fromEntries(here().params), offset: "", ...change }), true); };
  return html`<h1>Groups</h1>
    <${Filters} asked=${asked} facets=${shown?.facets || {}} set=${set} />
    ${refused && html`<p class="notice">${error}</p>`}
    ${shown ? html`<${List} data=${shown} asked=${asked} />` : !refused && html`<${Loading} />`}`;
}

function Filters({ asked, facets, set }) {
  const [text, setText] = useState(asked.search || "");
  const timer = useRef(0);
  useEffect(() => { setText(asked.search || ""); }, [asked.search]);
  function typed(event) {
    const value = event.target.value;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set({ search: value }), TYPING_MS);
  }
  const names = Object.keys(LABELS).filter((name) => asked[name] || Object.keys(facets[name] || {}).length > 1);
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <label>Search <input type="search" value=${text} onInput=${typed} placeholder="part of a name" spellcheck="false" /></label>
    ${names.map((name) => html`<label key=${name}>${LABELS[name]} <select value=${asked[name] || ""} onChange=${(e) => set({ [name]: e.target.value })}>
      <option value="">all</option>
      ${Object.entries(facets[name] || {}).filter(([value]) => value).sort((a, b) => b[1] - a[1]).map(([value, n]) => html`<option key=${value} value=${value}>${CONDITIONS[value] || words(value)} (${count(n)})</option>`)}
    </select></label>`)}</form>`;
}

function List({ data, asked }) {
  const first = data.offset + 1, end = data.offset + data.groups.length;
  if (!data.total) return html`<p role="status">No group matches.</p>`;
  return html`<p role="status" class="dim">${count(first)}–${count(end)} of ${count(data.total)} groups, the most urgent first</p>
    <table class="groups"><thead><tr><th scope="col">Group</th><th scope="col">State</th><th scope="col">Verdict</th><th scope="col" class="number">Behind</th><th scope="col" class="number">Lag</th><th scope="col" class="number">Skew</th><th scope="col">Last hour</th><th scope="col" class="number">Members</th><th scope="col">Owner</th></tr></thead>
    <tbody>${data.groups.map((row) => html`<${Row} key=${`${row.cluster}/${row.group}`} row=${row} />`)}</tbody></table>
    <nav class="pages" aria-label="More groups">${data.offset > 0 && html`<a href=${href("groups", { ...asked, offset: Math.max(0, data.offset - PAGE) || "" })}>← Previous ${PAGE}</a>`}
    ${end < data.total && html`<a href=${href("groups", { ...asked, offset: data.offset + PAGE })}>Next ${PAGE} →</a>`}</nav>`;
}

function Row({ row }) {
  return html`<tr class=${row.condition}>
    <th scope="row"><a href=${groupHref(row)}><${Name} of=${row.group} /></a></th>
    <td data-label="State"><${Condition} row=${row} /> <${Muted} row=${row} /></td>
    <td data-label="Verdict"><${Verdict} of=${row.verdict} blind=${row.blind} /></td>
    <td data-label="Behind" class="number"><${Behind} row=${row} /></td>
    <td data-label="Lag" class="number" title=${count(row.lag_records)}>${short(row.lag_records)}<${AsOf} row=${row} /></td>
    <td data-label="Skew" class="number">${row.skew === null ? "–" : row.skew.toFixed(2)}</td>
    <td data-label="Last hour"><${Spark} values=${row.spark} label="Lag in the last hour" /></td>
    <td data-label="Members" class="number">${count(row.member_count)}</td>
    <td data-label="Owner">${row.owner ? html`<${Name} of=${row.owner} />` : html`<span class="dim">–</span>`}</td></tr>`;
}
