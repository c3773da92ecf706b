// What all views share: the address, the live connection, numbers and names as text.
import { h, html, render, createContext, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext } from "./vendor/preact-htm.js";
export { h, html, render, createContext, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useContext };
import { ACTIONS, VERDICTS, WITH_NUMBERS } from "./words.js";

// The address at which kagent lies, whatever prefix a proxy puts before it. Kept, as the page's own address changes.
export const ROOT = document.baseURI;
document.querySelector("base").href = ROOT;

const POLL_MS = 1000;
const HIDDEN_POLL_MS = 15000;
const PATIENCE_MS = 8000; // more than a worker waits for the others
const TOKEN = "kagent-token";

let storage = null;
try { storage = window.sessionStorage; } catch { /* a browser may forbid it: the token then lasts until a reload */ }
let token = storage?.getItem(TOKEN) || "";
const loginAsked = new Set();
export function onLogin(listener) { loginAsked.add(listener); return () => loginAsked.delete(listener); }
export function setToken(value) { token = value; try { storage?.setItem(TOKEN, value); } catch { /* as above */ } }

let serverAhead = 0;
export const now = () => Date.now() + serverAhead;

async function ask(path, options = {}) {
  const headers = { Accept: "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}), ...options.headers };
  const answer = await fetch(new URL(path, ROOT), { cache: "no-store", credentials: "same-origin", ...options, headers });
  const date = Date.parse(answer.headers.get("Date") || "");
  if (date && Math.abs(date - now()) > 1500) serverAhead = date - Date.now();
  if (answer.status === 401) {
    const said = await answer.json().catch(() => ({}));
    loginAsked.forEach((listener) => listener(said.error || "A login is needed.", answer.headers.has("WWW-Authenticate")));
    throw new Error("A login is needed.");
  }
  return answer;
}

// One question, once. Rejects with the sentence that the worker gives.
export async function once(path, body) {
  const more = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const answer = await ask(path, { ...more, signal: AbortSignal.timeout(70000) });
  const said = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(said?.error || `The worker answers with HTTP ${answer.status}.`);
  return said;
}

// An answer that is kept up to date: asked for every second, and sent only if it changed (ETag).
export function useLive(path) {
  const [state, setState] = useState({ data: null, error: null, path });
  useEffect(() => {
    let ended = false, tag = null, timer = 0, failing = false;
    const controller = new AbortController();
    async function poll() {
      clearTimeout(timer);
      try {
        const signal = AbortSignal.any ? AbortSignal.any([controller.signal, AbortSignal.timeout(PATIENCE_MS)]) : controller.signal;
        const answer = await ask(path, { headers: tag ? { "If-None-Match": tag } : {}, signal });
        if (ended) return;
        if (answer.status === 304) {
          if (failing) setState((old) => ({ ...old, error: null }));
        } else {
          const data = await answer.json();
          if (ended) return;
          if (!answer.ok) throw Object.assign(new Error(data.error || `HTTP ${answer.status}`), { status: answer.status });
          tag = answer.headers.get("ETag");
          setState({ data, error: null, path });
        }
        failing = false;
      } catch (error) {
        if (ended) return;
        failing = true;
        tag = error.status ? null : tag;
        const sentence = error.status || error.message.startsWith("A login") ? error.message : "The worker does not answer.";
        setState((old) => ({ data: error.status === 404 ? null : old.path === path ? old.data : null, error: sentence, status: error.status, path }));
      }
      if (!ended) timer = setTimeout(poll, document.hidden ? HIDDEN_POLL_MS : POLL_MS);
    }
    const seen = () => { if (!document.hidden) poll(); };
    document.addEventListener("visibilitychange", seen);
    const unlisten = onRetry(poll);
    poll();
    return () => { ended = true; clearTimeout(timer); controller.abort(); document.removeEventListener("visibilitychange", seen); unlisten(); };
  }, [path]);
  return state.path === path ? state : { data: null, error: null, path };
}
const retries = new Set();
const onRetry = (poll) => { retries.add(poll); return () => retries.delete(poll); };
export const retryAll = () => retries.forEach((poll) => poll());

// --- age -------------------------------------------------------------------------------------------------------
// What is old must not look healthy. The time of the last judgement while nothing newer comes, else 0.
export const Old = createContext(0);
export const silent_s = (data) => (now() - data.time_ms) / 1000;
export const silence_allowed_s = (data) => Math.max(20, 4 * data.tick_s);
export function useOld({ data, error }) {
  const [old, setOld] = useState(0);
  useEffect(() => {
    const look = () => setOld(data && (error || (data.time_ms && silent_s(data) > silence_allowed_s(data))) ? data.time_ms || 1 : 0);
    look();
    const timer = setInterval(look, 2000);
    return () => clearInterval(timer);
  }, [data, error]);
  return old;
}
export const asOf = (ms) => (ms > 1 ? `as of ${clock(ms)}` : "before the worker began");

// --- addresses -------------------------------------------------------------------------------------------------
export function here() {
  const path = location.pathname.slice(new URL(ROOT).pathname.length).replace(/^ui\/?/, "");
  return { page: path || "cluster", params: new URLSearchParams(location.search) };
}
export function href(page, params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  return new URL(`ui/${page}${query ? `?${query}` : ""}`, ROOT).href;
}
export function go(address, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}
export const groupHref = (row) => href("group", { cluster: row.cluster, group: row.group });

// --- text ------------------------------------------------------------------------------------------------------
// Names from Kafka are anybody's text: control, format and private characters are shown, and nothing is longer than this.
export function inert(name, limit = 255) {
  const text = String(name ?? "");
  const cut = text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (c) => {
    const code = c.codePointAt(0).toString(16);
    return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}
// A sentence in which long settings and addresses break after a dot, and not within a word.
export const Breakable = ({ text }) => inert(text, 2000).split(/(?<=[.=:/(])(?=\w)/).map((part, at) => (at ? html`<wbr />${part}` : part));
export const Name = ({ of, limit }) => html`<bdi class="name" title=${inert(of)}>${inert(of, limit)}</bdi>`;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}
export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (value >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  return value >= 10 || value === Math.round(value) ? whole.format(value) : value.toFixed(1);
}
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${(s / 3600).toFixed(s < 36000 ? 1 : 0)} h`;
  return `${Math.round(s / 86400)} days`;
}
export function clock(ms) {
  const date = new Date(ms);
  const day = date.toDateString() === new Date(now()).toDateString() ? "" : `${date.toLocaleDateString("en-CA")} `;
  return `${day}${date.toLocaleTimeString("en-GB")}`;
}
// By the same words as on a terminal: see kagent/contract/words.py.
export const words = (name) => (Object.hasOwn(VERDICTS, name) ? VERDICTS[name] : inert(name).replaceAll("_", " "));
export function actionWords({ type, params }) {
  const [parameter, text] = WITH_NUMBERS[type] || [];
  return params?.[parameter] !== undefined ? text.replace("{}", inert(params[parameter])) : ACTIONS[type] || words(type);
}
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

function useEverySecond() {
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 1000); return () => clearInterval(timer); }, []);
}

export function Ago({ ms }) {
  useEverySecond();
  return html`<time datetime=${new Date(ms).toISOString()} title=${clock(ms)}>${span((now() - ms) / 1000)} ago</time>`;
}

// A message comes again only when something important changes: beside newer numbers, its text says how old it is.
const OLD_MS = 60000; // as in kagent/client/incident_text.py
export function TextAge({ ms }) {
  useEverySecond();
  return now() - ms < OLD_MS ? null : html`<span class="dim">(text from <${Ago} ms=${ms} />)</span>`;
}

// --- small parts -----------------------------------------------------------------------------------------------
const SIGNS = { open: "▲", suspect: "◆", blind: "⊘", no_members: "○", healthy: "●" };
export const CONDITIONS = { open: "open", suspect: "watched closely", blind: "blind", no_members: "no members, records wait", healthy: "healthy" };
export function Condition({ row }) {
  const old = useContext(Old);
  if (old) return html`<span class="badge old"><span aria-hidden="true">⊘</span> was ${CONDITIONS[row.condition]}</span>`;
  const kind = row.condition === "open" ? `open ${row.incident?.severity || ""}` : row.condition;
  const stale = row.condition === "blind" && row.incident ? ", one open" : "";
  return html`<span class=${`badge ${kind}`}><span aria-hidden="true">${SIGNS[row.condition]}</span> ${CONDITIONS[row.condition]}${row.condition === "open" ? ` · ${row.incident.severity}` : stale}</span>`;
}
// How much of these names a narrow column may leave out: members are mostly told apart by the end, which would be cut off.
const ROOM = 22, NARROW_ROOM = 11;
const narrow = matchMedia("(max-width: 46rem)");
export function commonStart(names) {
  if (names.length < 2 || Math.max(...names.map((name) => name.length)) <= (narrow.matches ? NARROW_ROOM : ROOM)) return 0;
  const low = names.reduce((a, b) => (a < b ? a : b)), high = names.reduce((a, b) => (a > b ? a : b));
  let same = 0;
  while (same < low.length && low[same] === high[same]) same += 1;
  const word = low.slice(0, same).search(/[^-_.:/]*$/);
  return word > (narrow.matches ? 3 : 8) ? word - 1 : 0;
}

// Of a blind group the last known numbers would look like those of a healthy one.
export const Behind = ({ row }) => (row.blind || row.seconds_behind === null ? html`<span class="dim">not known</span>` : row.seconds_behind ? span(row.seconds_behind) : html`<span class="dim">0 s</span>`);
// Nor would its lag, which stays as it was when its commits were last known.
export const AsOf = ({ row }) => row.blind && row.as_of_ms && html` <small class="dim">of <${Ago} ms=${row.as_of_ms} /></small>`;
// A muted incident must not look like any other.
export const Muted = ({ row }) => row.muted_until_ms && html`<span class="badge old">muted until ${clock(row.muted_until_ms)}</span>`;
export const Verdict = ({ of, blind }) => (blind && of === "balanced" ? html`<span class="dim">–</span>` : of === "balanced" ? html`<span class="dim">balanced</span>` : html`<strong>${words(of)}</strong>`);

export function Spark({ values, label }) {
  const known = values.filter((v) => v !== null);
  if (known.length < 2) return html`<span class="dim">–</span>`;
  const most = Math.max(...known, 1), step = 120 / (values.length - 1);
  let path = "", pen = false;
  values.forEach((v, at) => {
    if (v === null) { pen = false; return; }
    path += `${pen ? "L" : "M"}${(at * step).toFixed(1)} ${(27 - (v / most) * 25).toFixed(1)}`;
    pen = true;
  });
  return html`<svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label=${`${label}: greatest ${count(Math.max(...known))}, now ${count(known.at(-1))}`}><path class="ground" d="M0 27.5H120" /><path d=${path} /></svg>`;
}

export function CopyButton({ text, label = "Copy" }) {
  const [done, setDone] = useState("");
  async function copy() {
    let right = false;
    try { await navigator.clipboard.writeText(text); right = true; } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      area.className = "offscreen";
      document.body.append(area);
      area.select();
      right = document.execCommand("copy"); // the clipboard proper is there over TLS and on loopback only
      area.remove();
    }
    setDone(right ? "Copied" : "Select it and copy by hand");
    setTimeout(() => setDone(""), 2500);
  }
  return html`<button class="copy" onClick=${copy}>${done || label}</button><span class="offscreen" role="status">${done}</span>`;
}

export const Loading = () => html`<p class="dim" role="status">Asking the worker …</p>`;

export function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry.contentRect.width)));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
