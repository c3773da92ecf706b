// The shell: navigation, what is wrong with kagent itself, the login; and the page that the address names.
import { html, render, useState, useEffect, useRef, useLive, here, href, go, onLogin, setToken, retryAll, ROOT, clock, Ago, Loading, Old, silent_s, silence_allowed_s, span, useOld } from "./lib.js";
import { Cluster } from "./cluster.js";
import { Groups } from "./groups.js";

const PAGES = { cluster: Cluster, groups: Groups, group: Later };

// The page of one group brings the charts, half of all that is loaded: it comes when it is asked for, or when there is time.
const charts = () => import("./group.js");
let Group = null;
function Later(props) {
  const [, ready] = useState(false);
  useEffect(() => { if (!Group) charts().then((found) => { Group = found.Group; ready(true); }, () => ready(false)); }, []);
  return Group ? html`<${Group} ...${props} />` : html`<${Loading} />`;
}
addEventListener("load", () => setTimeout(charts, 2000));

function useAddress() {
  const [address, setAddress] = useState(here());
  useEffect(() => {
    const moved = () => setAddress(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return address;
}

function follow(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (!link.href.startsWith(`${ROOT}ui/`) || link.target || link.hash) return;
  event.preventDefault();
  go(link.href);
}

function Login() {
  const [said, setSaid] = useState(null);
  const field = useRef(null);
  useEffect(() => onLogin((sentence, byToken) => setSaid({ sentence, byToken })), []);
  useEffect(() => { if (said?.byToken) field.current?.focus(); }, [said?.byToken]);
  if (!said) return null;
  function enter(event) {
    event.preventDefault();
    setToken(field.current.value.trim());
    setSaid(null);
    retryAll();
  }
  return html`<section class="notice" aria-label="Login"><p>${said.sentence}</p>
    ${said.byToken && html`<form onSubmit=${enter}><label>Token <input ref=${field} type="password" autocomplete="current-password" required /></label> <button>Log in</button></form>`}
  </section>`;
}

// What is wrong with kagent itself stands above every page: a page of a kagent that sees nothing must not look healthy.
function Trouble({ status }) {
  const { data, error } = status;
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 2000); return () => clearInterval(timer); }, []);
  const found = [];
  if (error && !error.startsWith("A login")) found.push(["The worker does not answer.", data ? `The page shows the data as of ${clock(data.time_ms)}. Check that the worker runs (kagent worker).` : "Check that it runs (kagent worker)."]);
  if (data) {
    const silent = silent_s(data);
    if (!error && data.time_ms && silent > silence_allowed_s(data)) found.push([`The worker has judged no group for ${span(silent)}.`, "Look at the worker's log and at /healthz."]);
    if (!error && !data.time_ms) found.push(["The worker has judged no group yet.", "It is catching up, which takes seconds to minutes after a start."]);
    for (const c of data.clusters.filter((c) => c.status !== "watching" && data.time_ms)) found.push([c.status === "blind" ? `Blind on ${c.cluster}: ${c.reason}` : `Catching up on ${c.cluster}: ${c.reason || ""}`, c.advice]);
    if (!data.complete) found.push([`No worker answers for ${data.missing_partitions.length} of the events topic's partitions: some groups are missing here.`, data.unanswered.map((u) => `${u.worker}: ${u.why}`).join("; ") || "Start a worker: kagent worker"]);
  }
  if (!found.length) return null;
  return html`<section class="trouble" role="alert" aria-label="kagent cannot see everything">
    <span class="trouble-sign" aria-hidden="true">⊘</span>
    <div>${found.map(([what, todo]) => html`<p><strong>${what}</strong>${todo && html`<br /><span>What to do: ${todo}</span>`}</p>`)}</div></section>`;
}

function App() {
  const { page, params } = useAddress();
  const status = useLive("api/v1/status");
  const old = useOld(status);
  const main = useRef(null), first = useRef(true);
  useEffect(() => {
    document.title = page === "group" ? `${params.get("group") || "group"} · kagent` : `${page} · kagent`;
    if (!first.current) { main.current?.focus({ preventScroll: true }); scrollTo(0, 0); }
    first.current = false;
  }, [page, page === "group" ? params.get("group") : ""]);
  useEffect(() => { document.addEventListener("click", follow); return () => document.removeEventListener("click", follow); }, []);
  const Page = PAGES[page] || Cluster;
  const open = status.data?.open.length || 0;
  const link = (name, text) => html`<a href=${href(name)} aria-current=${page === name ? "page" : null}>${text}</a>`;
  return html`<a class="skip" href="#main">Skip to the content</a>
    <header class="top"><a class="brand" href=${href("cluster")}><img src=${new URL("ui/icon.svg", ROOT).href} alt="" width="24" height="24" /> kagent</a>
      <nav aria-label="Pages">${link("cluster", open ? `Cluster (${open} open)` : "Cluster")}${link("groups", "Groups")}</nav>
      <span class="live dim">${status.data && !status.error ? html`judged <${Ago} ms=${status.data.time_ms} />` : "not connected"}</span></header>
    <${Login} /><${Trouble} status=${status} />
    <main id="main" ref=${main} tabindex="-1" class=${old ? "old" : ""}><${Old.Provider} value=${old}><${Page} status=${status} params=${params} /><//></main>
    <footer class="dim">kagent ${status.data?.version || ""} · read-only · <a href=${new URL("api/v1/openapi.json", ROOT).href}>API</a></footer>`;
}

render(html`<${App} />`, document.getElementById("app"));
