"""The labelling page: its HTML, style and script as texts. It loads nothing but these, from the server that gives them.

Texts to be judged arrive as JSON and are put on the page as text nodes only; the script builds each element from a
fixed list of kinds and has no way to turn text into markup.
"""

from __future__ import annotations

# === Page ===

HTML = """<!doctype html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Label answers</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page.css">
</head>
<body>
<header class="top">
  <div class="row">
    <h1 id="title">Label answers</h1>
    <p id="who" class="quiet"></p>
    <div class="tools">
      <button id="raw" type="button" aria-pressed="false" title="Show the plain text (R)">Raw</button>
      <button id="theme" type="button" title="Light, dark or as the system says (T)">Theme: auto</button>
      <button id="keys" type="button" title="Keyboard shortcuts (?)">Keys</button>
      <button id="finish" type="button" title="Stop here and see the result">Finish</button>
    </div>
  </div>
  <div class="row progress-row">
    <progress id="bar" max="1" value="0" aria-label="Progress"></progress>
    <p id="count" class="quiet"></p>
  </div>
</header>
<main id="main" tabindex="-1" aria-live="off"></main>
<footer class="bar" id="bottom" hidden>
<div class="bar-row">
  <div class="choices" id="choices" role="group" aria-label="Your label"></div>
  <div class="steps">
    <button id="back" type="button" title="Back (left arrow)">← Back</button>
    <button id="skip" type="button" title="Skip (S)">Skip</button>
    <button id="next" type="button" title="Next (right arrow)">Next →</button>
  </div>
  <label class="remark"><span class="hidden">Comment</span>
    <textarea id="comment" rows="1" maxlength="10000" placeholder="Comment (C)"></textarea>
  </label>
  <p id="status" role="status" aria-live="polite"></p>
</div>
</footer>
<dialog id="help" aria-labelledby="help-title">
  <h2 id="help-title">Keyboard</h2>
  <dl id="help-keys"></dl>
  <p class="quiet">Every label is on disk before the next item appears. No verdict and no label that the file
  holds is shown before you finish.</p>
  <button id="help-close" type="button">Close</button>
</dialog>
<noscript><p class="failure">This page needs JavaScript. Without it, label in the terminal: leave out --web.</p>
</noscript>
<script src="page.js" defer></script>
</body>
</html>
"""

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#2b5fb8"/>
<path d="M7 9h7v14H7zM18 9h7v14h-7z" fill="#fff" opacity=".35"/>
<path d="M8 17l3 3 5-8" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>
</svg>
"""

# === Style ===

STYLE = """
:root {
  --page: #f4f5f7; --card: #ffffff; --ink: #1b1f26; --quiet: #5a6372; --line: #d5dae2; --code: #eef1f5;
  --strong: #2b5fb8; --on-strong: #ffffff; --mark: #e3ecfb; --good: #1c6b3c; --bad: #a3261c; --shadow: 0 1px 3px #0002;
  color-scheme: light;
  font-size: clamp(15px, 11.6px + 0.34vw, 25px);
}
@media (prefers-color-scheme: dark) {
  :root[data-theme="auto"] {
    --page: #14171c; --card: #1d2129; --ink: #e7eaf0; --quiet: #a1abbb; --line: #363d49; --code: #272d37;
    --strong: #7fabf5; --on-strong: #0d1420; --mark: #243450; --good: #7fd6a0; --bad: #ff9c92; --shadow: none;
    color-scheme: dark;
  }
}
:root[data-theme="dark"] {
  --page: #14171c; --card: #1d2129; --ink: #e7eaf0; --quiet: #a1abbb; --line: #363d49; --code: #272d37;
  --strong: #7fabf5; --on-strong: #0d1420; --mark: #243450; --good: #7fd6a0; --bad: #ff9c92; --shadow: none;
  color-scheme: dark;
}
* { box-sizing: border-box; }
html, body { height: 100%; }
body {
  margin: 0; display: flex; flex-direction: column; min-height: 100%; background: var(--page); color: var(--ink);
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; line-height: 1.5;
}
h1, h2, h3, h4, h5, p { margin: 0; }
h1 { font-size: 1.05rem; font-weight: 650; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); font-size: 0.88rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.top { padding: 0.55rem 1rem 0.5rem; background: var(--card); border-bottom: 1px solid var(--line); flex: none; }
.row { display: flex; align-items: center; gap: 0.4rem 0.9rem; flex-wrap: wrap; max-width: 112rem; margin: 0 auto; }
.tools { margin-left: auto; display: flex; gap: 0.4rem; flex-wrap: wrap; }
.progress-row { margin-top: 0.35rem; flex-wrap: nowrap; }
.progress-row .quiet { white-space: nowrap; font-variant-numeric: tabular-nums; }
progress { flex: 1; height: 0.5rem; border: 0; border-radius: 1rem; overflow: hidden;
  background: var(--code); min-width: 4rem; }
progress::-webkit-progress-bar { background: var(--code); }
progress::-webkit-progress-value { background: var(--strong); }
progress::-moz-progress-bar { background: var(--strong); }
button {
  font: inherit; font-size: 0.88rem; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 0.45rem; padding: 0.32rem 0.7rem; cursor: pointer; min-height: 2.1rem;
}
button:hover:not(:disabled) { border-color: var(--strong); }
button:disabled { opacity: 0.45; cursor: default; }
button[aria-pressed="true"] { background: var(--strong); color: var(--on-strong); border-color: var(--strong); }
:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
main:focus { outline: none; }
.top, .bar { overflow: hidden; scrollbar-gutter: stable; }
main { flex: 1 1 auto; overflow-y: auto; padding: 1rem; min-height: 0; scrollbar-gutter: stable; }
.item { max-width: 112rem; margin: 0 auto; display: grid; gap: 1rem; }
.item-head { display: flex; gap: 0.25rem 0.9rem; align-items: baseline; flex-wrap: wrap; }
.item-head h2 { font-size: 1rem; overflow-wrap: anywhere; }
.tag { border: 1px solid var(--line); border-radius: 1rem; padding: 0 0.6rem; font-size: 0.82rem; color: var(--quiet); }
.pair, .single { display: grid; gap: 1rem; align-items: start; }
.context { display: grid; gap: 1rem; align-content: start; }
@media (min-width: 860px) {
  .pair { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .single { grid-template-columns: minmax(0, 1fr) minmax(0, 1.25fr); }
}
.card { background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; box-shadow: var(--shadow);
  min-width: 0; }
.card > h3 {
  font-size: 0.8rem; letter-spacing: 0.02em; color: var(--quiet); padding: 0.45rem 1rem;
  border-bottom: 1px solid var(--line); font-weight: 650; display: flex; gap: 0.5rem; align-items: center;
  position: sticky; top: -1rem; background: var(--card);
  border-radius: 0.6rem 0.6rem 0 0; z-index: 1;
}
.card.chosen { border-color: var(--strong); box-shadow: 0 0 0 1px var(--strong); }
.side { display: inline-grid; place-items: center; width: 1.6rem; height: 1.6rem; border-radius: 0.35rem;
  background: var(--mark);
  color: var(--ink); font-weight: 700; font-size: 0.9rem; }
.text { padding: 0.8rem 1rem 1rem; overflow-wrap: anywhere; }
.text > *, .text li > *, .text blockquote > * { max-width: 46rem; }
.text > .wide, .text li > .wide, .text blockquote > .wide { max-width: none; }
.text > * + *, .text li > * + *, .text blockquote > * + * { margin-top: 0.7em; }
.text p { white-space: pre-line; }
.text h3, .text h4, .text h5 { line-height: 1.3; font-weight: 680; }
.text h3 { font-size: 1.15rem; } .text h4 { font-size: 1.05rem; } .text h5 { font-size: 1rem; }
.text ul, .text ol { margin-bottom: 0; padding-left: 1.6em; }
.text > :is(ul, ol):first-child { margin-top: 0; }
.text li + li { margin-top: 0.25em; }
.text li > ul, .text li > ol { margin-top: 0.25em; }
.text blockquote { margin-inline: 0; margin-bottom: 0;
  padding-left: 0.9em; border-left: 3px solid var(--line); color: var(--quiet); }
.text hr { width: 100%; border: 0; border-top: 1px solid var(--line); }
code, pre { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 0.88em; tab-size: 4; }
code { background: var(--code); border-radius: 0.25em; padding: 0.08em 0.3em; white-space: pre-wrap; }
pre { background: var(--code); border-radius: 0.45rem; padding: 0.7em 0.9em; margin: 0; overflow-x: auto;
  line-height: 1.45; }
pre code { background: none; padding: 0; white-space: pre; overflow-wrap: normal; font-size: 1em; }
.language { display: block; color: var(--quiet); font-size: 0.78rem; margin-bottom: 0.35em; font-family: inherit; }
.plain { white-space: pre-wrap; background: none; padding: 0; overflow-wrap: anywhere; }
.empty { color: var(--quiet); font-style: italic; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.93em; }
th, td { border: 1px solid var(--line); padding: 0.3em 0.65em; text-align: left; vertical-align: top; }
th { background: var(--code); font-weight: 650; }
.bar {
  flex: none; background: var(--card); border-top: 1px solid var(--line);
  padding: 0.6rem 1rem 0.35rem;
}
.bar-row {
  max-width: 112rem; margin: 0 auto; display: grid; gap: 0.5rem 1rem; align-items: center;
  grid-template-columns: auto auto minmax(10rem, 1fr);
}
.bar[hidden] { display: none; }
.choices { display: flex; gap: 0.5rem; }
.choices button { min-height: 2.6rem; padding: 0.35rem 0.9rem; font-weight: 600; display: flex; gap: 0.5rem;
  align-items: center; }
.choices .word { font-weight: 450; font-size: 0.84rem; }
kbd {
  font: inherit; font-size: 0.82em; font-weight: 650; border: 1px solid currentColor; border-radius: 0.3em;
  padding: 0 0.35em; opacity: 0.8; min-width: 1.5em; text-align: center; display: inline-block;
}
.steps { display: flex; gap: 0.4rem; }
.remark textarea {
  width: 100%; font: inherit; font-size: 0.9rem; color: var(--ink); background: var(--page);
  border: 1px solid var(--line); border-radius: 0.45rem; padding: 0.45rem 0.6rem; resize: vertical; min-height: 2.6rem;
  max-height: 30vh; display: block;
}
.remark textarea::placeholder { color: var(--quiet); opacity: 1; }
#status { grid-column: 1 / -1; min-height: 1.2rem; line-height: 1.2rem; font-size: 0.8rem; color: var(--quiet); }
#status.failure, .failure { color: var(--bad); font-weight: 600; }
.done { max-width: 70rem; margin: 0 auto; display: grid; gap: 1.1rem; }
.done h2 { font-size: 1.25rem; }
.panel > h3 { font-size: 1.02rem; }
.panel { background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; box-shadow: var(--shadow);
  padding: 1rem; display: grid; gap: 0.7rem; grid-template-columns: minmax(0, 1fr); }
.done .actions { display: flex; gap: 0.6rem; flex-wrap: wrap; }
.primary { background: var(--strong); color: var(--on-strong); border-color: var(--strong); font-weight: 600; }
.figures td:nth-child(n+2) { font-variant-numeric: tabular-nums; white-space: nowrap; }
.dots { display: flex; flex-wrap: wrap; gap: 0.35rem; }
.dots button { min-width: 2.4rem; padding: 0.2rem 0.4rem; font-variant-numeric: tabular-nums; }
.dots .skipped { border-style: dashed; color: var(--quiet); }
details { border-top: 1px solid var(--line); }
details > summary { cursor: pointer; padding: 0.55rem 0.2rem; display: flex; flex-wrap: wrap; gap: 0.3rem 0.8rem;
  align-items: baseline; }
summary::before { content: "▸"; color: var(--quiet); }
details[open] > summary::before { content: "▾"; }
summary::-webkit-details-marker { display: none; }
summary b { font-weight: 600; overflow-wrap: anywhere; min-width: 6rem; }
.said { border-radius: 1rem; background: var(--mark); padding: 0.05rem 0.7rem; font-size: 0.88rem;
  white-space: nowrap; }
details .pair, details .single { margin: 0.6rem 0 1rem; }
dialog { border: 1px solid var(--line); border-radius: 0.7rem; background: var(--card); color: var(--ink);
  max-width: min(34rem, 92vw);
  padding: 1.2rem 1.4rem; }
dialog::backdrop { background: #0007; }
dialog h2 { font-size: 1.1rem; }
dialog dl { display: grid; grid-template-columns: auto 1fr; gap: 0.35rem 1rem; margin: 0.9rem 0; }
dialog dd { margin: 0; }
dialog p { margin-bottom: 0.9rem; }
@media (max-width: 1100px) {
  .bar-row { grid-template-columns: 1fr auto; }
  .remark { grid-column: 1 / -1; grid-row: 2; }
}
@media (max-width: 680px) {
  .top { padding: 0.4rem 0.7rem; }
  .top .tools { margin-left: 0; width: 100%; }
  .top .tools button { flex: 1; padding: 0.2rem 0.3rem; min-height: 2rem; font-size: 0.8rem; white-space: nowrap; }
  #who { display: none; }
  main { padding: 0.7rem; }
  .text { padding: 0.65rem 0.8rem 0.8rem; }
  .card > h3 { top: -0.7rem; padding: 0.4rem 0.8rem; }
  .bar { padding: 0.5rem 0.7rem 0.35rem; }
  .bar-row { grid-template-columns: minmax(0, 1fr); gap: 0.4rem; }
  .choices button { flex: 1; justify-content: center; padding: 0.3rem 0.2rem; }
  .choices.scores .word, .choices kbd { display: none; }
  .steps button { flex: 1; }
  .remark { grid-row: auto; }
  .remark textarea { min-height: 2.2rem; padding: 0.3rem 0.5rem; }
}
@media (max-height: 560px) { .remark textarea { min-height: 2rem; } #status { min-height: 0; } }
@media (prefers-reduced-motion: no-preference) { button { transition: border-color 0.1s; } }
"""

# === Script ===

SCRIPT = r"""
"use strict";

const by = (id) => document.getElementById(id);
const SIDES = [["A", "A is better", "A"], ["equal", "Equal", "="], ["B", "B is better", "B"]];
const THEMES = ["auto", "light", "dark"];
let state = null, item = null, raw = false, since = 0, saving = false, screen = "loading";

// --- Requests: answers of this server only; a failure is shown and nothing moves on. ---

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)};
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("the labelling server does not answer; is it still running?");
  }
  const text = await reply.text();
  let value = {};
  try { value = JSON.parse(text); } catch { value = {}; }
  if (!reply.ok) throw new Error(value.error || "refused (" + reply.status + ")");
  return value;
}

function say(text, failed) {
  const status = by("status");
  status.textContent = text;
  status.classList.toggle("failure", Boolean(failed));
}

// --- Building: every element from a fixed list, every text as a text node. ---

function make(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  for (const child of children) element.append(child);
  return element;
}

function button(text, act, className) {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

function inline(parent, spans) {
  for (const [style, text] of spans) {
    let node = document.createTextNode(text);
    if (style.includes("c")) node = make("code", "", node);
    if (style.includes("i")) node = make("em", "", node);
    if (style.includes("b")) node = make("strong", "", node);
    parent.append(node);
  }
  return parent;
}

const BUILD = {
  text: (block) => inline(make("p"), block.spans),
  heading: (block) => inline(make("h" + Math.min(5, block.level + 2)), block.spans),
  rule: () => make("hr"),
  quote: (block) => make("blockquote", "", ...block.blocks.map(build)),
  code: (block) => {
    const pre = make("pre", "wide");
    pre.tabIndex = 0;
    if (block.language) pre.append(make("span", "language", block.language));
    pre.append(make("code", "", block.text));
    return pre;
  },
  list: (block) => {
    const list = make(block.ordered ? "ol" : "ul");
    if (block.ordered) list.start = block.start;
    for (const blocks of block.items) list.append(make("li", "", ...blocks.map(build)));
    return list;
  },
  table: (block) => {
    const head = make("tr", "", ...block.head.map((cell) => inline(make("th"), cell)));
    const rows = block.rows.map((row) => make("tr", "", ...row.map((cell) => inline(make("td"), cell))));
    const box = make("div", "scroll wide", make("table", "", make("thead", "", head), make("tbody", "", ...rows)));
    box.tabIndex = 0;
    return box;
  },
};

function build(block) { return BUILD[block.kind](block); }

function textBox(forms) {
  const box = make("div", "text");
  if (!forms.raw.trim()) box.append(make("p", "empty", "(empty answer)"));
  else if (raw) box.append(make("pre", "plain", forms.raw));
  else box.append(...forms.blocks.map(build));
  return box;
}

function card(title, side, forms) {
  const head = make("h3");
  if (side) head.append(make("span", "side", side));
  head.append(title);
  const section = make("section", "card", head, textBox(forms));
  if (side) section.dataset.side = side;
  return section;
}

function texts(found) {
  const context = found.panels.map((panel) => card(panel.title, "", panel));
  if (state.kind === "score") {
    return [make("div", "single", make("div", "context", ...context), card("Answer", "", found.answers[0]))];
  }
  const pair = make("div", "pair", card("Answer", "A", found.answers[0]), card("Answer", "B", found.answers[1]));
  return [make("div", "context", ...context), pair];
}

// --- One item ---

function drawItem() {
  screen = "item";
  const head = make("div", "item-head", make("h2", "", "Item " + (item.place + 1) + " of " + state.items.length),
    make("span", "quiet", item.item));
  if (item.category) head.append(make("span", "tag", item.category));
  by("main").replaceChildren(make("article", "item", head, ...texts(item)));
  by("bottom").hidden = false;
  by("back").disabled = item.place === 0;
  by("next").disabled = item.place === state.items.length - 1 && state.open !== null;
  markChoice();
}

function markChoice() {
  const standing = state.items[item.place];
  for (const one of by("choices").children) {
    one.setAttribute("aria-pressed", String(standing.done && one.dataset.value === String(standing.choice)));
    one.disabled = state.closed;
  }
  const skipped = standing.done && standing.choice === null;
  by("skip").setAttribute("aria-pressed", String(skipped));
  by("skip").disabled = state.closed;
  for (const one of document.querySelectorAll("[data-side]")) {
    one.classList.toggle("chosen", standing.done && one.dataset.side === standing.choice);
  }
}

async function show(place, note) {
  try {
    item = await ask("item/" + place);
  } catch (error) {
    say(error.message, true);
    return;
  }
  history.replaceState(null, "", "#" + (place + 1));
  by("comment").value = item.comment;
  by("comment").disabled = state.closed;
  since = performance.now();
  drawItem();
  by("main").scrollTop = 0;
  if (document.activeElement !== by("comment")) by("main").focus({preventScroll: true});
  say(note || "", false);
}

async function keep(choice) {
  if (saving || state.closed || screen !== "item") return;
  saving = true;
  const place = item.place, seconds = (performance.now() - since) / 1000;
  try {
    const kept = await ask("label", {place, choice, comment: by("comment").value, seconds});
    state.items[place] = {done: kept.done, choice: kept.choice, comment: kept.comment};
    state.open = kept.open;
    drawProgress();
    const word = choice === null ? "skipped" : "labelled " + wordOf(choice);
    if (kept.open === null) drawDone();
    else await show(kept.open, "Saved: item " + (place + 1) + " " + word + ".");
  } catch (error) {
    say("Not saved: " + error.message, true);
  } finally {
    saving = false;
  }
}

async function keepComment() {
  if (!item || state.closed || screen !== "item") return;
  const place = item.place, standing = state.items[place], comment = by("comment").value;
  if (!standing.done || comment.trim() === standing.comment) return;
  try {
    const kept = await ask("label", {place, choice: standing.choice, comment});
    standing.comment = kept.comment;
    say("Saved: comment on item " + (place + 1) + ".", false);
  } catch (error) {
    say("Not saved: " + error.message, true);
  }
}

function wordOf(choice) {
  if (choice === null) return "skipped";
  return state.kind === "score" ? String(choice) : {A: "A better", B: "B better", equal: "equal"}[choice];
}

async function step(way) {
  if (screen !== "item") return;
  await keepComment();
  const place = item.place + way;
  if (place >= 0 && place < state.items.length) await show(place);
  else if (place === state.items.length && state.open === null) drawDone();
}

// --- Progress, the end, the result ---

function drawProgress() {
  const labelled = state.items.filter((one) => one.done && one.choice !== null).length;
  const skipped = state.items.filter((one) => one.done && one.choice === null).length;
  const total = state.items.length;
  by("bar").max = total;
  by("bar").value = labelled + skipped;
  by("count").textContent = labelled + " of " + total + " labelled" + (skipped ? ", " + skipped + " skipped" : "");
}

function drawDone() {
  screen = "done";
  by("bottom").hidden = true;
  history.replaceState(null, "", "#done");
  const open = state.items.filter((one) => !one.done).length;
  const title = open ? open + " of " + state.items.length + " items are still open" : "All items are done";
  const dots = state.items.map((one, place) => {
    const dot = button(String(place + 1), () => show(place), one.done && one.choice === null ? "skipped" : "");
    dot.title = one.done ? wordOf(one.choice) : "open";
    dot.setAttribute("aria-label", "Item " + (place + 1) + ": " + dot.title);
    dot.setAttribute("aria-pressed", String(one.done && one.choice !== null));
    return dot;
  });
  const result = button("Show the result", showResult, "primary");
  const actions = make("div", "actions", result);
  if (open) actions.append(button("Go on labelling", () => show(state.open)));
  by("main").replaceChildren(make("div", "done", make("section", "panel", make("h2", "", title),
    make("p", "", "You can go back to any item and change your label. Once the result is shown, what it is " +
      "set against is known, and labels are closed."), make("div", "dots", ...dots), actions)));
  result.focus();
}

async function showResult() {
  try {
    const result = await ask("result", {});
    state.closed = true;
    drawResult(result);
  } catch (error) {
    by("main").prepend(make("p", "failure", error.message));
  }
}

function table(className, head, rows) {
  const cells = (name, row) => make("tr", "", ...row.map((text) => make(name, "", text)));
  return make("div", "scroll", make("table", className, make("thead", "", cells("th", head)),
    make("tbody", "", ...rows.map((row) => cells("td", row)))));
}

function disagreement(one) {
  const line = make("summary", "", make("b", "", one.item), make("span", "said", "people " + one.human),
    make("span", "said", one.against + " " + one.judge));
  if (one.why) line.append(make("span", "quiet", one.why));
  const details = make("details", "", line);
  if (one.comment) details.append(make("p", "quiet", "Comment: " + one.comment));
  if (one.place !== null) details.addEventListener("toggle", async () => {
    if (!details.open || details.dataset.filled) return;
    details.dataset.filled = "yes";
    details.append(...texts(await ask("item/" + one.place)));
  });
  return details;
}

function drawResult(result) {
  screen = "result";
  by("bottom").hidden = true;
  by("finish").disabled = true;
  history.replaceState(null, "", "#result");
  const parts = [make("h2", "", result.title)];
  for (const section of result.sections) {
    const box = make("section", "panel", make("h3", "", section.title));
    if (section.rows.length) box.append(table("figures", section.head, section.rows));
    for (const note of section.notes) box.append(make("p", "quiet", note));
    parts.push(box);
  }
  if (result.disagreements.length) {
    parts.push(make("section", "panel", make("h3", "", "Where people and " + result.against + " differ"),
      ...result.disagreements.map(disagreement)));
  }
  const end = button("Stop the labelling server", async () => {
    await ask("stop", {});
    end.disabled = true;
    end.textContent = "Stopped; this page can be closed";
  });
  parts.push(make("section", "panel", make("p", "", "Your labels are in " + state.file + "."),
    make("div", "actions", end)));
  by("main").replaceChildren(make("div", "done", ...parts));
  by("main").scrollTop = 0;
  by("main").focus({preventScroll: true});
}

// --- Tools and keys ---

function toggleRaw() {
  raw = !raw;
  by("raw").setAttribute("aria-pressed", String(raw));
  if (screen === "item") {
    const top = by("main").scrollTop;
    drawItem();
    by("main").scrollTop = top;
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  by("theme").textContent = "Theme: " + name;
  try { sessionStorage.setItem("theme", name); } catch { return; }
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}

function helpKeys() {
  const keys = state.kind === "score" ? [["1 to 5", "your score"]]
    : [["A  1", "the left (first) answer is better"], ["B  2", "the right (second) answer is better"],
      ["=  E  0", "equally good"]];
  keys.push(["S", "skip this item"], ["←  →", "back and on, without changing anything"],
    ["C", "write a comment (Esc leaves it)"], ["Space", "page down"], ["R", "plain text or formatted"],
    ["T", "light, dark, as the system says"], ["?", "these keys"]);
  by("help-keys").replaceChildren(...keys.flatMap(([key, text]) => [
    make("dt", "", ...key.split("  ").flatMap((one) => [make("kbd", "", one), " "])), make("dd", "", text)]));
}

function openHelp() {
  if (by("help").open) by("help").close();
  else by("help").showModal();
}

function choiceOf(key) {
  if (state.kind === "score") return /^[1-5]$/.test(key) ? Number(key) : undefined;
  return {a: "A", 1: "A", b: "B", 2: "B", "=": "equal", e: "equal", 0: "equal"}[key.toLowerCase()];
}

function press(event) {
  if (!state || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || by("help").open) return;
  if (event.target === by("comment")) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      event.preventDefault();
      by("main").focus({preventScroll: true});
      if (event.key === "Enter") keepComment();
    }
    return;
  }
  const key = event.key.toLowerCase();
  const tools = {r: toggleRaw, t: nextTheme, "?": openHelp};
  if (tools[key]) {
    event.preventDefault();
    tools[key]();
  } else if (screen === "done" && key === "arrowleft") {
    event.preventDefault();
    show(state.items.length - 1);
  } else if (screen === "item") pressOnItem(event, key);
}

function pressOnItem(event, key) {
  const choice = choiceOf(event.key);
  const acts = {s: () => keep(null), arrowleft: () => step(-1), arrowright: () => step(1),
    c: () => by("comment").focus()};
  if (event.repeat && (choice !== undefined || key === "s")) return;
  if (choice !== undefined) acts[key] = () => keep(choice);
  if (!acts[key]) return;
  event.preventDefault();
  acts[key]();
}

function drawChoices() {
  const list = state.kind === "score" ? state.scale.map((one) => [one.value, one.word, String(one.value)]) : SIDES;
  by("choices").classList.toggle("scores", state.kind === "score");
  by("choices").replaceChildren(...list.map(([value, word, key]) => {
    const one = button("", () => keep(value));
    one.dataset.value = String(value);
    one.title = word + " (" + key + ")";
    if (state.kind === "score") one.append(make("span", "", key), make("span", "word", word));
    else one.append(make("kbd", "", key), make("span", "", word));
    return one;
  }));
}

function keptTheme() {
  try { return sessionStorage.getItem("theme"); } catch { return null; }
}

async function start() {
  setTheme(THEMES.includes(keptTheme()) ? keptTheme() : "auto");
  by("raw").addEventListener("click", toggleRaw);
  by("theme").addEventListener("click", nextTheme);
  by("keys").addEventListener("click", openHelp);
  by("help-close").addEventListener("click", openHelp);
  by("finish").addEventListener("click", async () => { await keepComment(); drawDone(); });
  by("back").addEventListener("click", () => step(-1));
  by("next").addEventListener("click", () => step(1));
  by("skip").addEventListener("click", () => keep(null));
  by("comment").addEventListener("blur", keepComment);
  document.addEventListener("keydown", press);
  try {
    state = await ask("state");
  } catch (error) {
    by("main").replaceChildren(make("p", "failure", error.message));
    return;
  }
  by("title").textContent = state.title;
  by("who").textContent = "as " + state.annotator;
  document.title = state.title;
  drawChoices();
  helpKeys();
  drawProgress();
  const wanted = Number(location.hash.slice(1)) - 1;
  if (state.closed) showResult();
  else if (Number.isInteger(wanted) && wanted >= 0 && wanted < state.items.length) show(wanted);
  else if (state.open !== null) show(state.open);
  else drawDone();
}

start();
"""
