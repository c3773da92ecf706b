// The first page: is anything the matter, what was looked at, and is kagent itself well.
import { html, href, groupHref, useContext, Ago, TextAge, Breakable, Old, asOf, Condition, Loading, Muted, Name, Spark, Verdict, count, plural, span, words, clock, now } from "./lib.js";

export function Cluster({ status }) {
  const { data } = status;
  if (!data) return html`<h1 class="offscreen">Cluster</h1>${!status.error && html`<${Loading} />`}`;
  return html`<h1 class="offscreen">Cluster</h1>${data.clusters.map((c) => html`<${One} key=${c.cluster} cluster=${c} data=${data} />`)}
    <${Workers} data=${data} />`;
}

function One({ cluster, data }) {
  const open = data.open.filter((row) => row.cluster === cluster.cluster);
  const old = useContext(Old);
  const seeing = cluster.status === "watching" && data.complete && !old;
  const calm = seeing && !open.length;
  const headline = open.length ? `${plural(open.length, "incident")} open${old ? `, ${asOf(old)}` : ""}`
    : old ? "Not known now" : calm ? "Nothing is open" : cluster.status === "catching_up" ? "Catching up" : cluster.status === "blind" ? "Blind" : "Not all groups can be seen";
  return html`<section class=${`cluster ${calm ? "calm" : open.length ? "busy" : "blindbox"}`} aria-labelledby=${`c-${cluster.cluster}`}>
    <header><h2 id=${`c-${cluster.cluster}`}><${Name} of=${cluster.cluster} /></h2><p class="headline"><span aria-hidden="true">${calm ? "✓" : open.length ? "▲" : "⊘"}</span> ${headline}</p>
    <p>${old ? `${asOf(old)}: ` : ""}${looked(cluster, calm)}</p></header>
    <dl class="tiles">
      ${tile("judged", cluster.judged, href("groups", { cluster: cluster.cluster }))}
      ${cluster.learning > 0 && tile("of them learning", cluster.learning)}
      ${cluster.muted > 0 && tile("of them muted", cluster.muted)}
      ${cluster.no_members > 0 && tile("without members, records wait", cluster.no_members, href("groups", { cluster: cluster.cluster, condition: "no_members" }), "warn")}
      ${tile("open", open.length, href("groups", { cluster: cluster.cluster, condition: "open" }), open.length ? "warn" : "")}
      ${tile("blind", cluster.blind, href("groups", { cluster: cluster.cluster, condition: "blind" }), cluster.blind ? "hazard" : "")}
      ${tile("ignored", cluster.ignored)}
      <div><dt>pipeline's progress</dt><dd>${cluster.progress_ms ? html`<${Ago} ms=${cluster.progress_ms} />` : "none yet"}</dd></div>
    </dl>
    ${open.length > 0 && html`<ol class="incidents">${open.map((row) => html`<${Incident} key=${row.incident.id} row=${row} />`)}</ol>`}
  </section>`;
}

function looked(c, calm) {
  const said = `${plural(c.judged, "group")} judged${c.blind ? `, ${count(c.blind)} blind` : ""}${c.ignored ? `, ${count(c.ignored)} left out by the settings` : ""}.`;
  const who = c.judged === 1 ? "It is" : c.learning === c.judged ? "All are" : `${count(c.learning)} of them ${c.learning === 1 ? "is" : "are"}`;
  const learning = c.learning ? ` ${who} being learned${c.learning_until_ms ? ` until ${clock(c.learning_until_ms)}` : ""}: until then an incident needs more evidence.` : "";
  const unread = c.no_members ? ` In ${plural(c.no_members, "group")} without members records wait.` : "";
  if (calm) return `${said}${learning}${unread} No member is behind in a way that needs action.`;
  return c.status === "watching" ? said : `${said} ${c.status === "blind" ? "What is open stays open, and no new incident opens until kagent sees the groups again." : ""}`;
}

const tile = (name, value, link, kind = "") => html`<div class=${kind}><dt>${name}</dt><dd>${link ? html`<a href=${link} aria-label=${`${count(value)} ${name}`}>${count(value)}</a>` : count(value)}</dd></div>`;

function Incident({ row }) {
  const special = row.group.startsWith("<");
  return html`<li class=${`incident ${row.incident.severity}`}>
    <div class="incident-head"><${Condition} row=${row} /> ${special ? html`<${Name} of=${row.group} />` : html`<a class="big" href=${groupHref(row)}><${Name} of=${row.group} /></a>`} <${Verdict} of=${row.incident.verdict} /> <${Muted} row=${row} /></div>
    <p class="reason">${row.incident.reason} <${TextAge} ms=${row.incident.as_of_ms} /></p>
    ${row.incident.status === "superseded" && html`<p class="reason">Its advice no longer applies.</p>`}
    ${row.incident.advice && html`<p class="reason"><strong>What to do:</strong> <${Breakable} text=${row.incident.advice} /></p>`}
    <div class="incident-foot dim"><span>opened <${Ago} ms=${row.incident.opened_at_ms} /></span><span>${row.blind || row.seconds_behind === null ? "delay not known" : `${span(row.seconds_behind)} behind`}</span>${row.owner && html`<span>owner <${Name} of=${row.owner} /></span>`}<${Spark} values=${row.spark} label="Lag in the last hour" /></div></li>`;
}

function Workers({ data }) {
  const old = useContext(Old);
  return html`<section aria-labelledby="workers"><h2 id="workers">Workers</h2>
    <ul class="plain">${data.workers.map((w) => html`<li key=${w}>${old ? html`<span class="badge old"><span aria-hidden="true">⊘</span> answered before</span>` : html`<span class="badge healthy"><span aria-hidden="true">●</span> answers</span>`} <${Name} of=${w} /></li>`)}
    ${data.unanswered.map((u) => html`<li key=${u.worker}><span class="badge blind"><span aria-hidden="true">⊘</span> silent</span> <${Name} of=${u.worker} />: ${u.why}</li>`)}</ul>
    <p class="dim">Judged every ${data.tick_s} s, the last time at ${clock(data.time_ms)}.</p></section>`;
}
