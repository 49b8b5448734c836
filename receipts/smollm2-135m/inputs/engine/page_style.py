"""The style sheet of every page: one text, put inline, so that a page loads nothing.

Colours are named once for light and once for dark; blue is the judge, ochre is people, grey is what needs no model.
They keep their order of lightness, so that print in grey and colour-blind readers see the same picture. Widths of drawn
things come from the pictures themselves: no inline style stands in a page, the policy in its head forbids it.
"""

from __future__ import annotations

# === Style sheet ===

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f5f7f9; --ink: #16202b; --soft: #55616e; --line: #d9dfe5; --strong: #8794a1;
  --judge: #0a63a8; --judge-soft: #cfe2f3; --people: #98590a; --people-soft: #f6e3c5; --plain: #7b8794;
  --first: #e39a1c; --none: #c3d6e6; --second: #6d4796; --bad: #b3361b; --bad-soft: #fbe3dc; --good: #12684f;
  --good-soft: #d9efe7; --shade: 10, 99, 168; --on-second: #ffffff; --focus: #0a63a8;
  --sans: "Inter", "SF Pro Text", -apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans",
    "Liberation Sans", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #10161c; --panel: #18212a; --ink: #e5ebf1; --soft: #a3b0bd; --line: #2c3743; --strong: #63717f;
    --judge: #6fb4ee; --judge-soft: #173a57; --people: #e2a650; --people-soft: #443011; --plain: #8996a3;
    --first: #e7a63a; --none: #2f4a61; --second: #b08fdb; --bad: #f08b70; --bad-soft: #4a2118; --good: #6fcbad;
    --good-soft: #15392e; --shade: 84, 160, 222; --on-second: #10161c; --focus: #9ccdf7;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 3.6rem; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 var(--sans);
  overflow-wrap: break-word; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -999rem; top: 0; }
.skip:focus { left: .5rem; top: .5rem; z-index: 9; background: var(--paper); padding: .5rem .75rem; }
h1, h2, h3, h4, td, th, .lede { overflow-wrap: break-word; }
h1, h2, h3, h4 { line-height: 1.2; font-weight: 650; letter-spacing: -.012em; text-wrap: balance; margin: 0; }
h1 { font-size: clamp(1.55rem, 1.1rem + 1.7vw, 2.35rem); }
h2 { font-size: clamp(1.3rem, 1.1rem + .7vw, 1.6rem); }
h3 { font-size: 1.04rem; letter-spacing: 0; }
h4 { font-size: .9rem; letter-spacing: 0; }
p { margin: .6rem 0; max-width: 46rem; text-wrap: pretty; }
a { color: var(--judge); text-underline-offset: .15em; }
code, pre, .mono { font-family: var(--mono); font-size: .86em; }
.soft { color: var(--soft); }
.small { font-size: .86rem; line-height: 1.5; }
.wide { max-width: none; }

/* frame */
.bar { position: sticky; top: 0; z-index: 5; background: var(--paper); border-bottom: 1px solid var(--line); }
.bar nav { display: flex; gap: 1.15rem; align-items: baseline; overflow-x: auto; white-space: nowrap;
  max-width: 78rem; margin: 0 auto; padding: .7rem 1.5rem; font-size: .88rem; scrollbar-width: none; }
.bar nav::-webkit-scrollbar { display: none; }
.bar a { color: var(--soft); text-decoration: none; }
.bar a:hover { color: var(--ink); text-decoration: underline; }
.bar .name { color: var(--ink); font-weight: 650; margin-right: .6rem; }
main, .foot { max-width: 78rem; margin: 0 auto; padding: 0 1.5rem; }
section { padding: 2.6rem 0 0; }
section + section { margin-top: 2.4rem; border-top: 1px solid var(--line); }
.intro { padding-top: 2.2rem; }
.eyebrow { font-size: .76rem; letter-spacing: .07em; text-transform: uppercase; color: var(--soft); margin: 0 0 .7rem; }
.lede { font-size: 1.06rem; color: var(--soft); margin: .7rem 0 0; max-width: 52rem; }
.foot { color: var(--soft); font-size: .86rem; padding-bottom: 3rem; }
.foot p { max-width: none; margin-top: 2.4rem; padding-top: 1.4rem; border-top: 1px solid var(--line); }

/* first screen */
.hero { display: grid; grid-template-columns: minmax(13rem, 17rem) minmax(0, 1fr); gap: 1.4rem 3rem; margin: 1.8rem 0 0;
  align-items: start; }
.figure-big { font-size: clamp(3rem, 2.2rem + 3.2vw, 4.6rem); line-height: 1; font-weight: 650; letter-spacing: -.035em;
  font-variant-numeric: tabular-nums; margin: .1rem 0 .35rem; }
.hero-name { font-weight: 600; }
.hero-range { font-variant-numeric: tabular-nums; color: var(--soft); }
.meaning { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1.2rem 3rem;
  margin-top: 1.6rem; }
.meaning h2 { font-size: .95rem; letter-spacing: 0; }
.meaning p { margin: .35rem 0 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem; margin-top: 1.8rem; }
.fact { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.15rem;
  min-width: 0; }
.fact h2 { font-size: .95rem; letter-spacing: 0; margin-bottom: .5rem; }
.states { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; margin: 0; padding: 0; list-style: none; }
.states b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; line-height: 1.25; }
.checks { list-style: none; margin: 0; padding: 0; font-size: .9rem; }
.checks li { padding-left: 1.5rem; position: relative; margin: .16rem 0; overflow-wrap: anywhere; }
.checks li::before { position: absolute; left: 0; font-weight: 700; content: "\\2713"; color: var(--good); }
.checks li.no::before { content: "\\2715"; color: var(--bad); }
.checks li.open::before { content: "\\2013"; color: var(--soft); }
.command { display: block; overflow-x: auto; white-space: pre; background: var(--paper); border: 1px solid var(--line);
  border-radius: 6px; padding: .45rem .65rem; margin-top: .55rem; }
.alert { border-left: 4px solid var(--bad); background: var(--bad-soft); padding: .6rem .9rem; margin: 1rem 0;
  border-radius: 0 6px 6px 0; max-width: none; }
.note { border-left: 4px solid var(--line); padding: .1rem .9rem; color: var(--soft); font-size: .9rem;
  margin-top: 1rem; }
.note ul { padding-left: 1rem; margin: .4rem 0; }

/* pictures: rows of label, plot, figure; the plot is an SVG drawn in percent, so text keeps its size at any width */
figure { margin: 1.4rem 0 0; }
figcaption { font-weight: 600; margin-bottom: .2rem; }
.reading { color: var(--soft); font-size: .9rem; margin: 0 0 .8rem; max-width: 52rem; }
h2 + .reading { margin-top: .5rem; }
.plot { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr) max-content; column-gap: 1.1rem;
  align-items: center; }
.plot-row { display: contents; }
.plot .label { font-size: .9rem; max-width: 17rem; overflow-wrap: anywhere; line-height: 1.25; padding: .3rem 0; }
.plot .label small { color: var(--soft); font-size: .8rem; font-weight: 400; display: block; }
.plot .value { font-size: .86rem; font-variant-numeric: tabular-nums; color: var(--soft); text-align: right;
  white-space: nowrap; }
.plot .value b { color: var(--ink); font-weight: 600; }
.plot .lead { font-weight: 650; }
.plot.narrow { max-width: 34rem; }
.fact ul:not([class]) { margin: 0; padding-left: 1.1rem; font-size: .9rem; overflow-wrap: anywhere; }
.counts { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; max-width: none; }
.columns { columns: 2 26rem; column-gap: 3.2rem; }
.columns > * { break-inside: avoid; margin-bottom: 1.6rem; }
.columns figure { margin-top: 0; }
.drawn { position: relative; align-self: stretch; min-height: 2.1rem; }
.drawn.ticks { min-height: 1.5rem; container-type: inline-size; }
@container (max-width: 12rem) { .spare { display: none; } }
.drawn > svg { position: absolute; left: 0; top: 0; width: 100%; height: 100%; overflow: visible; }
.plot .group { grid-column: 1 / -1; font-weight: 600; font-size: .9rem; padding-top: .7rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 0 3.2rem; }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.3rem; font-size: .84rem; color: var(--soft); margin: .2rem 0 .7rem;
  padding: 0; list-style: none; }
.key svg { width: 1.5rem; height: .9rem; vertical-align: -.1rem; margin-right: .4rem; overflow: visible; }
.grid-line { stroke: var(--line); stroke-width: 1; }
.zero-line { stroke: var(--strong); stroke-width: 1; }
.ticks text { fill: var(--soft); font: .76rem var(--sans); font-variant-numeric: tabular-nums; }
.range { stroke-width: 4; stroke-linecap: round; }
.dot { stroke: var(--paper); stroke-width: 1.5; }
.judge { fill: var(--judge); } .range.judge, .stem.judge { stroke: var(--judge); }
.control { fill: var(--plain); } .range.control, .stem.control { stroke: var(--plain); }
.people { fill: var(--people); } .range.people, .stem.people { stroke: var(--people); }
.range.judge, .range.control, .range.people { opacity: .45; }
.stem { stroke-width: 2; }
.ceiling { stroke: var(--people); stroke-width: 2; stroke-dasharray: 3 3; }
.hollow { fill: var(--paper); stroke-width: 2; }
.hollow.judge { stroke: var(--judge); } .hollow.people { stroke: var(--people); }
.hollow.control { stroke: var(--plain); }
.first { fill: var(--first); } .none { fill: var(--none); } .second { fill: var(--second); }
.unread { fill: var(--bad); } .blank { fill: var(--panel); stroke: var(--line); }
.in-bar { font: 600 .78rem var(--sans); font-variant-numeric: tabular-nums; fill: #10161c; }
.in-bar.on-second, .in-bar.on-judge, .in-bar.on-unread { fill: var(--on-second); } .in-bar.on-none { fill: var(--ink); }
.scatter { display: block; width: 100%; height: 20rem; overflow: visible; }
.scatter text { fill: var(--soft); font: .78rem var(--sans); font-variant-numeric: tabular-nums; }
.scatter text.tag { fill: var(--ink); }
.scatter-frame { padding: .6rem 1.4rem 2.4rem 3.2rem; max-width: 48rem; }
.scatter-frame.square { max-width: 30rem; }

/* tables */
.scroll { overflow-x: auto; margin: .7rem 0; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .34rem .9rem .34rem 0; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); font-weight: 600; border-bottom-color: var(--strong); vertical-align: bottom; }
tbody th { font-weight: 500; }
td.num, th.num { text-align: right; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
details > summary { cursor: pointer; color: var(--soft); font-size: .88rem; margin-top: .7rem; width: fit-content; }
details > summary:hover { color: var(--ink); }
.heat { border-collapse: separate; border-spacing: 2px; }
.heat td, .heat th { border: 0; padding: .38rem .55rem; }
.heat td { text-align: center; min-width: 4.6rem; border-radius: 4px; line-height: 1.2; }
.heat td small { display: block; opacity: .85; }
.heat thead th { text-align: center; }
.heat thead th:first-child { text-align: left; }
.heat .row-name { white-space: nowrap; }
.heat td.nothing { color: var(--soft); }
.s0 { background: rgba(var(--shade), .05); } .s1 { background: rgba(var(--shade), .12); }
.s2 { background: rgba(var(--shade), .2); } .s3 { background: rgba(var(--shade), .29); }
.s4 { background: rgba(var(--shade), .39); } .s5 { background: rgba(var(--shade), .5); }
.hit { outline: 2px solid var(--people); outline-offset: -2px; }
.multiples { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1.2rem 3rem; }

/* items */
@media (min-width: 90rem) {
  #pairs { --room: min(100vw - 6rem, 104rem); margin-left: calc(50% - var(--room) / 2);
    margin-right: calc(50% - var(--room) / 2); }
}
.controls { display: flex; flex-wrap: wrap; gap: .6rem .8rem; align-items: end; margin: 1rem 0 .8rem; }
.controls label { font-size: .78rem; color: var(--soft); display: grid; gap: .15rem; max-width: 100%; }
.controls select, .controls input { font: .9rem var(--sans); color: var(--ink); background: var(--paper);
  border: 1px solid var(--strong); border-radius: 6px; padding: .36rem .5rem; max-width: 15rem; min-height: 2.2rem; }
.controls input { width: 13rem; }
button { font: .88rem var(--sans); color: var(--ink); background: var(--panel); border: 1px solid var(--strong);
  border-radius: 6px; padding: .36rem .75rem; min-height: 2.2rem; cursor: pointer; }
button:hover { border-color: var(--judge); }
button:disabled { opacity: .5; cursor: default; }
.desk { display: grid; grid-template-columns: minmax(15rem, 21rem) minmax(0, 1fr); gap: 1.6rem; align-items: start; }
.list { position: sticky; top: 3.6rem; max-height: calc(100vh - 5rem); overflow-y: auto; border: 1px solid var(--line);
  border-radius: 8px; margin: 0; padding: 0; list-style: none; }
.list button { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 .6rem; width: 100%; text-align: left;
  border: 0; border-bottom: 1px solid var(--line); border-radius: 0; background: none; padding: .5rem .75rem;
  font-size: .86rem; line-height: 1.35; }
.list button:hover { background: var(--panel); }
.list button[aria-current="true"] { background: var(--judge-soft); }
.list .id { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 550; }
.list .sub { grid-column: 1 / -1; color: var(--soft); font-size: .78rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.marks { letter-spacing: .04em; font-weight: 600; }
.item { min-width: 0; border: 1px solid var(--line); border-radius: 8px; padding: 1.1rem 1.3rem 1.4rem; }
.item-head { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between; }
.item-head h3 { overflow-wrap: anywhere; }
.tools { display: flex; flex-wrap: wrap; gap: .4rem .6rem; align-items: center; }
.badges { display: flex; flex-wrap: wrap; gap: .35rem; margin: .6rem 0 0; padding: 0; list-style: none; }
.badge { font-size: .78rem; line-height: 1.4; border: 1px solid var(--line); background: var(--panel);
  border-radius: 99px; padding: .1rem .6rem; max-width: 100%; overflow-wrap: anywhere; }
.badge.bad { background: var(--bad-soft); border-color: var(--bad); }
.badge.good { background: var(--good-soft); border-color: var(--good); }
.badge.folk { background: var(--people-soft); border-color: var(--people); }
.badge.pick { background: var(--judge-soft); border-color: var(--judge); }
.answers { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; margin-top: 1rem; }
.box { border: 1px solid var(--line); border-radius: 8px; min-width: 0; }
.box > header { display: flex; flex-wrap: wrap; gap: .35rem .7rem; align-items: center; padding: .5rem .8rem;
  border-bottom: 1px solid var(--line); background: var(--panel); border-radius: 8px 8px 0 0; font-size: .88rem; }
.box > header strong { margin-right: auto; }
.text { padding: .7rem .9rem; overflow: auto; max-height: 34rem; unicode-bidi: isolate; overflow-wrap: anywhere;
  contain: content; font-size: .94rem; }
.text.raw { white-space: pre-wrap; font-family: var(--mono); font-size: .82rem; }
.text > :first-child { margin-top: 0; } .text > :last-child { margin-bottom: 0; }
.text p { max-width: none; margin: .55rem 0; white-space: pre-line; }
.text pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .75rem;
  overflow-x: auto; line-height: 1.45; white-space: pre; }
.text code { background: var(--panel); border-radius: 4px; padding: .05rem .25rem; }
.text pre code { background: none; padding: 0; }
.text h5 { margin: .9rem 0 .3rem; font-size: .96rem; line-height: 1.3; }
.text ul, .text ol { margin: .5rem 0; padding-left: 1.5rem; }
.text blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); color: var(--soft); }
.text hr { border: 0; border-top: 1px solid var(--line); }
.text table { display: block; overflow-x: auto; }
.asked { margin-top: 1rem; }
.asked .text { max-height: 22rem; }
.judges { margin-top: 1.2rem; display: grid; gap: .8rem; }
.chips { border-collapse: separate; border-spacing: 0; margin-top: .3rem; }
.chips th, .chips td { padding: .18rem 1rem .18rem 0; }
.why { margin: .5rem 0 0; padding: 0; list-style: none; display: grid; gap: .5rem; }
.why li { border-left: 3px solid var(--line); padding-left: .8rem; font-size: .9rem; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.why .said { max-height: 18rem; overflow-y: auto; }
.verdict { padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 8px; }
.verdict-head { display: flex; flex-wrap: wrap; gap: .4rem .8rem; align-items: center; }
.examples details { border: 1px solid var(--line); border-radius: 8px; margin-top: .6rem; padding: 0 1rem; }
.examples summary { width: auto; margin: 0; padding: .65rem 0; color: var(--ink); overflow-wrap: anywhere; }
.examples details[open] { padding-bottom: 1rem; }
.examples .text { max-height: 24rem; white-space: pre-wrap; }
kbd { font: .78rem var(--mono); border: 1px solid var(--strong); border-radius: 4px; padding: 0 .3rem; }
.hide { display: none; }

@media screen and (max-width: 60rem) {
  .desk { grid-template-columns: minmax(0, 1fr); }
  .list { position: static; max-height: 17rem; }
}
@media screen and (max-width: 46rem) {
  main, .foot, .bar nav { padding-left: 1rem; padding-right: 1rem; }
  .hero { grid-template-columns: minmax(0, 1fr); }
  .plot { display: block; }
  .plot-row { display: grid; grid-template-columns: minmax(0, 1fr) max-content; column-gap: 1rem; align-items: end; }
  .plot-row .label { max-width: none; padding-top: .35rem; }
  .plot-row .drawn { grid-column: 1 / -1; order: 3; }
  .answers { grid-template-columns: minmax(0, 1fr); }
  .controls label, .controls select, .controls input { max-width: none; width: 100%; }
  .controls { display: grid; grid-template-columns: 1fr 1fr; }
}
@media (min-width: 120rem) { html { font-size: 112.5%; } }
@media print {
  :root { color-scheme: light; --paper: #fff; --panel: #f5f7f9; --ink: #000; --soft: #3d4650; --line: #c9d0d7;
    --strong: #6b7783; --judge: #0a63a8; --judge-soft: #cfe2f3; --people: #98590a; --people-soft: #f6e3c5;
    --plain: #7b8794; --first: #e39a1c; --none: #c3d6e6; --second: #6d4796; --bad: #b3361b; --bad-soft: #fbe3dc;
    --good: #12684f; --good-soft: #d9efe7; --shade: 10, 99, 168; --on-second: #fff; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  html { font-size: 11.5px; }
  .bar, .skip, .controls, .list, .tools, .counts, #pairs, details:not([open]) { display: none !important; }
  .chosen #pairs { display: block !important; }
  main, .foot { max-width: none; padding: 0; }
  #pairs { margin-left: 0; margin-right: 0; }
  section { padding-top: 1.1rem; } section + section { margin-top: 1.1rem; }
  figure, .fact, .verdict, tr, p, .plot, .pair, .multiples > div { break-inside: avoid; }
  h2, h3, figcaption, .reading, .key { break-after: avoid; }
  .text { max-height: none; overflow: visible; }
  .desk { display: block; }
  .scroll { overflow: visible; }
  a { color: inherit; text-decoration: none; }
}
"""
