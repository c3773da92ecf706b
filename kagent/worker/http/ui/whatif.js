// What if: other members, fewer moves, another strategy. The worker computes it with the code of `kagent plan` and `kagent assign`.
import { html, useEffect, useMemo, useRef, useState, once, CopyButton, Name, count, inert, plural, short } from "./lib.js";
import { Chart } from "./charts.js";
import { Map, Table } from "./map.js";

const WAIT_MS = 150;
const MOST_CHANGE = 1000; // as in what_if.py

// members and partitions: of the group as the page shows it, for names and lateness
export function WhatIf({ row, members, partitions }) {
  const [line, setLine] = useState(null), [error, setError] = useState(null), [busy, setBusy] = useState(false);
  async function begin() {
    setBusy(true);
    setError(null);
    try {
      const query = new URLSearchParams({ cluster: row.cluster, group: row.group });
      setLine((await once(`api/v1/group/scenario?${query}`)).line);
    } catch (problem) { setError(problem.message); }
    setBusy(false);
  }
  return html`<p class="dim">Computed from the group as it is now, with the code of <code>kagent plan</code> and <code>kagent assign</code>. It changes nothing in the cluster.</p>
    <p><button onClick=${begin} disabled=${busy}>${line ? "Read the group again" : busy ? "Asking the cluster …" : "Try moves, members and strategies"}</button></p>
    ${error && html`<p class="notice" role="alert">${error}</p>`}
    ${line && html`<${Bench} line=${line} members=${members} partitions=${partitions} />`}`;
}

function Bench({ line, members: present, partitions }) {
  const [members, setMembers] = useState(0), [moves, setMoves] = useState(null), [strategy, setStrategy] = useState("");
  const [whole, setWhole] = useState(null), [answer, setAnswer] = useState(null), [error, setError] = useState(null);
  const asked = useRef(0);
  useEffect(() => { setMembers(0); setMoves(null); }, [line]);
  useEffect(() => {
    const turn = ++asked.current;
    const timer = setTimeout(async () => {
      try {
        const found = await once("api/v1/what-if", { line, members, max_moves: moves, strategy: strategy || null });
        if (turn !== asked.current) return;
        setAnswer(found);
        if (moves === null) setWhole(found);
        setError(null);
      } catch (problem) { if (turn === asked.current) setError(problem.message); }
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [line, members, moves, strategy]);
  const frontier = whole?.plan.frontier || [[0, 0]];
  const most = frontier.at(-1)[0];
  const value = moves ?? whole?.plan.moves.length ?? 0;
  const total = line.members.length + members;
  function change(by) { setMembers(members + by); setMoves(null); }
  function to(field) {
    const wanted = Math.round(Number(field.value));
    if (wanted >= 1 && wanted <= line.members.length + MOST_CHANGE) change(wanted - total);
    else field.value = total;
  }
  const unit = whole?.plan.objective === "drain" ? "seconds until drained" : "work";
  return html`<div class="bench">
    <div class="controls">
      <label class="wide"><span>Moves: <output>${count(value)}</output> of ${count(most)}</span>
        <input type="range" min="0" max=${most} value=${value} disabled=${Boolean(strategy) || !most} onInput=${(e) => setMoves(Number(e.target.value))} aria-label="Moves" /></label>
      <div class="stepper" role="group" aria-label="Number of members"><span>Members</span><button onClick=${() => change(-1)} aria-label="One member less" disabled=${total <= 1}>−</button><input class="few" type="number" min="1" max=${line.members.length + MOST_CHANGE} value=${total} onChange=${(e) => to(e.target)} aria-label="Members" /><output aria-live="polite">${members ? `(${members > 0 ? "+" : "−"}${Math.abs(members)})` : ""}</output><button onClick=${() => change(1)} aria-label="One member more">+</button></div>
      <label>Assignment by <select value=${strategy} onChange=${(e) => setStrategy(e.target.value)}><option value="">the plan</option>${(whole?.plan.alternatives || []).map((a) => html`<option key=${a.strategy} value=${a.strategy}>${a.strategy} (greatest ${short(a.greatest)}, ${plural(a.moves, "move")}${a.feasible === "no" ? ", not for this kind of group" : ""})</option>`)}</select></label>
    </div>
    ${error && html`<p class="notice" role="alert">${error}</p>`}
    ${answer && html`<${Result} answer=${answer} strategy=${strategy} unit=${unit} present=${present} partitions=${partitions} />`}
    ${frontier.length > 1 && html`<${Chart} title=${`What each number of moves reaches: greatest ${unit} of a member`} steps=${true} at=${Math.max(0, frontier.findLastIndex(([n]) => n <= value))}
      lines=${[{ name: "greatest", time_s: frontier.map((f) => f[0]), values: frontier.map((f) => f[1]) }, { name: "no assignment gets below", time_s: frontier.map((f) => f[0]), values: frontier.map(() => whole.plan.greatest.lower_bound), dash: [4, 4] }]} />`}
    ${answer && html`<p><${CopyButton} text=${JSON.stringify(answer.line)} label="Copy the line for kagent plan" /></p>`}
  </div>`;
}

function Result({ answer, strategy, unit, present, partitions }) {
  const { plan, line, assign } = answer;
  const other = strategy && plan.alternatives.find((a) => a.strategy === strategy);
  const assignment = strategy ? assign?.assignment : plan.assignment;
  const found = useMemo(() => (assignment ? placed(line, assignment, present, partitions) : null), [answer]);
  if (!found) return html`<p class="notice">${assign?.error?.message || "This strategy gives no assignment for the group."}</p>`;
  const [moves, greatest, skew] = strategy ? [other?.moves, other?.greatest, other?.skew] : [plan.moves.length, plan.greatest.after, plan.skew.after];
  return html`<p class="verdict" aria-live="polite"><strong>${plural(moves ?? 0, "move")}</strong>: greatest ${unit} ${count(plan.greatest.now)} → <strong>${count(greatest)}</strong>, max/mean lag ${plan.skew.now.toFixed(2)} → <strong>${skew === undefined ? "–" : skew.toFixed(2)}</strong>; no assignment gets below ${count(plan.greatest.lower_bound)}.</p>
    ${other?.unsafe && html`<p class="notice"><strong>Not to be used:</strong> it breaks ${inert(other.unsafe)}.</p>`}
    ${plan.notes.map((note) => html`<p class="dim">${inert(note, 1000)}</p>`)}
    <${Map} members=${found.members} partitions=${found.partitions} after=${true} unit="records" />
    <${Table} members=${found.members} partitions=${found.partitions} label="Partitions in the what-if" />`;
}

// Clients put a UUID behind their name, which tells a person nothing while the names differ.
const UUID = /-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
function named(members, present) {
  const shown = new globalThis.Map(present.map((m) => [m.member_id, m.name]));
  const whole = members.map((m) => shown.get(inert(m.id)) || m.group_instance_id || m.id), names = whole.map((name) => name.replace(UUID, ""));
  return whole.map((name, at) => ({ name: new Set(names).size === names.length ? names[at] : name }));
}

// The scenario's partitions with who holds them now, and who would.
function placed(line, assignment, present, seen) {
  const code = new globalThis.Map(line.members.map((m, at) => [m.id, at]));
  const held = new globalThis.Map(), goal = new globalThis.Map();
  const key = (topic, partition) => `${partition} ${topic}`;
  for (const m of line.members) for (const [topic, partition] of m.owned || []) held.set(key(topic, partition), code.get(m.id));
  for (const [name, rows] of Object.entries(assignment)) for (const [topic, partition] of rows) goal.set(key(topic, partition), code.get(name));
  const partitions = [], late = new globalThis.Map(seen.map((p) => [key(p.topic, p.partition), p.seconds]));
  for (const [topic, pairs] of Object.entries(line.lags)) for (const [partition, lag] of pairs) {
    const member = held.get(key(topic, partition)) ?? -1, to = goal.get(key(topic, partition)) ?? -1;
    partitions.push({ topic, partition, member, to: to === member ? -1 : to, lag, seconds: late.get(key(topic, partition)) || 0, work: lag });
  }
  return { members: named(line.members, present), partitions };
}
