"""The script of every page: shows one item at a time from the embedded data, filters, sorts, steps, links.

It makes elements and sets textContent, nothing else: no markup is ever built from text, no address from data. Answers
are read as a small part of markdown (headings, lists, tables, fences, emphasis, code); a link shows its words and
address as text. Without it the page still shows every picture, table and figure.
"""

from __future__ import annotations

# === Script ===

SCRIPT = r"""
(function () {
  "use strict";
  var holder = document.getElementById("items");
  var desk = document.getElementById("desk");
  if (!holder || !desk) { return; }
  var data = JSON.parse(holder.textContent);
  var blocks = {};
  var SHOWN_AT_ONCE = 20000;
  var STEP = 120;
  var view = { items: [], shown: 0, at: null, raw: false };

  // --- texts ---
  function text(number) {
    var low = 0;
    while (low + 1 < data.starts.length && data.starts[low + 1] <= number) { low += 1; }
    if (!blocks[low]) { blocks[low] = JSON.parse(document.getElementById("texts-" + low).textContent); }
    return blocks[low][number - data.starts[low]];
  }
  var TURNING = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g;
  var UNSHOWABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
  var LONE = /[\ud800-\udfff\ufffe\uffff]/gu;  // with this flag only halves that have lost the other half
  function clean(words) {
    return String(words).replace(TURNING, "\u2426").replace(UNSHOWABLE, "\ufffd").replace(LONE, "\ufffd");
  }
  function el(name, className, words) {
    var made = document.createElement(name);
    if (className) { made.className = className; }
    if (words !== undefined && words !== null) { made.textContent = clean(words); }
    return made;
  }
  function add(parent) {
    for (var i = 1; i < arguments.length; i += 1) { if (arguments[i]) { parent.appendChild(arguments[i]); } }
    return parent;
  }

  // --- markdown, a small and safe part of it ---
  var INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(\S|\S[\s\S]*?\S)\*\*|\*(\S|[^\s*][^*\n]*?[^\s*])\*/g;
  function inline(parent, words) {
    var last = 0, found;
    INLINE.lastIndex = 0;
    if (words.length > 20000) { parent.appendChild(document.createTextNode(words)); return; }
    while ((found = INLINE.exec(words)) !== null) {
      if (found.index > last) { parent.appendChild(document.createTextNode(words.slice(last, found.index))); }
      if (found[1]) { parent.appendChild(el("code", "", found[2])); }
      else { parent.appendChild(el(found[3] ? "strong" : "em", "", found[3] || found[4])); }
      last = INLINE.lastIndex;
    }
    if (last < words.length) { parent.appendChild(document.createTextNode(words.slice(last))); }
  }
  function block(parent, name, words) {
    var made = el(name);
    inline(made, words);
    return parent.appendChild(made);
  }
  function cells(line) { return line.trim().replace(/^\||\|$/g, "").split("|"); }
  function tableRow(parent, line, name) {
    var row = el("tr");
    cells(line).forEach(function (words) { block(row, name, words.trim()); });
    parent.appendChild(row);
  }
  var FENCE = /^\s*(```+|~~~+)/;
  var ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
  var RULER = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;
  function starts(line) { return FENCE.test(line) || /^#{1,6}\s/.test(line) || ITEM.test(line) || /^\s*>/.test(line); }
  function markdown(parent, words) {
    var lines = clean(words).replace(/\r\n?/g, "\n").split("\n"), i = 0;
    while (i < lines.length) {
      var line = lines[i], fence = FENCE.exec(line), item = ITEM.exec(line), heading = /^#{1,6}\s+(.*)$/.exec(line);
      if (!line.trim()) { i += 1; }
      else if (fence) { i = fenced(parent, lines, i, fence[1]); }
      else if (heading) { block(parent, "h5", heading[1].replace(/\s#+\s*$/, "")); i += 1; }
      else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { parent.appendChild(el("hr")); i += 1; }
      else if (/^\s*>/.test(line)) { i = gathered(parent, "blockquote", lines, i, /^\s*> ?/); }
      else if (item) { i = list(parent, lines, i, item); }
      else if (line.indexOf("|") >= 0 && RULER.test(lines[i + 1] || "")) { i = grid(parent, lines, i); }
      else { i = paragraph(parent, lines, i); }
    }
  }
  function fenced(parent, lines, i, mark) {
    var kept = [];
    i += 1;
    while (i < lines.length && lines[i].trim().indexOf(mark) !== 0) { kept.push(lines[i]); i += 1; }
    add(parent, add(el("pre"), el("code", "", kept.join("\n"))));
    parent.lastChild.tabIndex = 0;
    return i + 1;
  }
  function gathered(parent, name, lines, i, mark) {
    var kept = [];
    while (i < lines.length && mark.test(lines[i])) { kept.push(lines[i].replace(mark, "")); i += 1; }
    block(parent, name, kept.join("\n"));
    return i;
  }
  function list(parent, lines, i, item) {
    var ordered = /\d/.test(item[2]), made = el(ordered ? "ol" : "ul");
    if (ordered) { made.start = parseInt(item[2], 10); }
    var depth = item[1].length, last = null;
    while (i < lines.length) {
      var next = ITEM.exec(lines[i]);
      if (next && next[1].length > depth + 1 && last) { i = list(last, lines, i, next); continue; }
      if (next && next[1].length < depth) { break; }
      if (next && /\d/.test(next[2]) !== ordered) { break; }
      if (next) { last = block(made, "li", next[3]); i += 1; continue; }
      if (!lines[i].trim()) {
        var after = i + 1 < lines.length ? ITEM.exec(lines[i + 1]) : null;
        if (after && /\d/.test(after[2]) === ordered) { i += 1; continue; }
        break;
      }
      if (/^\s/.test(lines[i]) && last && !FENCE.test(lines[i])) {
        last.appendChild(document.createTextNode("\n")); inline(last, lines[i].trim()); i += 1; continue;
      }
      break;
    }
    parent.appendChild(made);
    return i;
  }
  function grid(parent, lines, i) {
    var made = el("table"), head = el("thead"), body = el("tbody");
    tableRow(head, lines[i], "th");
    i += 2;
    while (i < lines.length && lines[i].indexOf("|") >= 0) { tableRow(body, lines[i], "td"); i += 1; }
    add(parent, add(made, head, body));
    return i;
  }
  function paragraph(parent, lines, i) {
    var kept = [lines[i]];
    i += 1;
    while (i < lines.length && lines[i].trim() && !starts(lines[i])) { kept.push(lines[i]); i += 1; }
    block(parent, "p", kept.join("\n"));
    return i;
  }
  function fill(box, words, all) {
    var shown = all || words.length <= SHOWN_AT_ONCE ? words : words.slice(0, SHOWN_AT_ONCE);
    box.textContent = "";
    if (!words) { add(box, el("p", "soft", "(empty)")); return; }
    if (view.raw) { box.textContent = clean(shown); } else { markdown(box, shown); }
    if (shown.length < words.length) {
      var more = el("button", "", "Show all " + words.length.toLocaleString("en") + " characters");
      more.type = "button";
      more.addEventListener("click", function () { fill(box, words, true); });
      box.appendChild(more);
    }
  }
  function textBox(words, label) {
    var box = el("div", view.raw ? "text raw" : "text");
    box.dir = "auto";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", label);
    fill(box, words, false);
    return box;
  }

  // --- filters ---
  var SCORES = data.kind === "scores";
  function pick(name) { return document.getElementById(name); }
  function judgeOf(item, place) { return (item.j || [])[place] || null; }
  function flagged(item, place, flag) {
    var found = judgeOf(item, place);
    return !!found && found.f.indexOf(flag) >= 0;
  }
  function decided(item, place) { var found = judgeOf(item, place); return found ? found.l : null; }
  function differ(item) {
    var first = decided(item, 0);
    return data.arms.some(function (_, place) { return decided(item, place) !== first; });
  }
  var SHOW = {
    all: function () { return true; },
    wrong: function (item, place) { return flagged(item, place, "wrong"); },
    right: function (item, place) {
      return !!item.g && decided(item, place) !== null && !flagged(item, place, "wrong");
    },
    differ: differ,
    nogold: function (item) { return !item.g; },
    none: function (item, place) { return decided(item, place) === null; },
    changed: function (item) {
      return (data.twins || []).some(function (pair) { return decided(item, pair[0]) !== decided(item, pair[1]); });
    },
    human: function (item) { return !!item.h; },
    "failed-checks": function (item) { return item.ch === false; }
  };
  function scored(show) {
    return function (item, place) { return "score-" + decided(item, place) === show; };
  }
  function disagrees(item, place) { return SCORES ? !!item.h || differ(item) : flagged(item, place, interest()); }
  function interest() { return data.items.some(function (item) { return item.g; }) ? "wrong" : "inconsistent"; }
  function searched(item, words) {
    var parts = [item.id, item.c, item.x, item.w].concat(item.m || []);
    if (parts.some(function (part) { return part && String(part).toLowerCase().indexOf(words) >= 0; })) { return true; }
    return [item.q, item.a, item.b].some(function (number) {
      return number !== undefined && text(number).toLowerCase().indexOf(words) >= 0;
    });
  }
  function split(item) { return (item.v || []).length ? tally(item) : 0; }
  function tally(item) {
    var counts = { A: 0, B: 0, equal: 0 };
    item.v.forEach(function (vote) { counts[vote[1]] += 1; });
    return Math.max(counts.A, counts.B, counts.equal) / item.v.length + item.v.length / 1000;
  }
  var SORT = {
    file: function () { return 0; },
    flags: function (item, place) { var found = judgeOf(item, place); return found ? -found.f.length : 1; },
    people: function (item) { return -split(item); },
    length: function (item) { return -Math.abs(item.n[0] - (item.n[1] || 0)); },
    low: function (item, place) { return decided(item, place) || 9; },
    high: function (item, place) { return -(decided(item, place) || 0); }
  };
  function chosen() {
    var place = Number(pick("f-arm").value), show = pick("f-show").value, category = pick("f-category");
    var model = pick("f-model"), fault = pick("f-fault"), words = pick("f-text").value.trim().toLowerCase();
    var test = SHOW[show] || (SCORES ? scored(show) : function (item, at) { return flagged(item, at, show); });
    var found = data.items.filter(function (item) {
      return test(item, place) && (!category || !category.value || item.c === category.value) &&
        (!model || !model.value || (item.m || []).indexOf(model.value) >= 0) &&
        (!fault || !fault.value || item.x === fault.value) && (!words || searched(item, words));
    });
    var order = SORT[pick("f-sort").value];
    return found.map(function (item, at) { return [order(item, place), at, item]; })
      .sort(function (a, b) { return a[0] - b[0] || a[1] - b[1]; })
      .map(function (entry) { return entry[2]; });
  }

  // --- list ---
  var list_ = pick("item-list"), count = pick("item-count"), detail = pick("item");
  function mark(item, place) {
    var found = judgeOf(item, place);
    if (!found || found.l === null) { return "\u00b7"; }
    if (SCORES) { return item.h ? "\u2260" : ""; }
    if (!item.g) { return data.items.some(function (each) { return each.g; }) ? "?" : ""; }
    return found.f.indexOf("wrong") >= 0 ? "\u2715" : "\u2713";
  }
  function entry(item) {
    var place = Number(pick("f-arm").value), button = el("button"), row = el("li");
    button.type = "button";
    var sub = [item.c, item.m ? item.m.join(" vs ") : null, item.x].filter(Boolean).join(" \u00b7 ");
    var said = decided(item, place), marks = el("span", "marks", mark(item, place) + " " + short(said));
    marks.title = SCORES ? "score " + said : "decision " + said + ", gold " + (item.g || "none");
    add(button, el("span", "id", item.id), marks, el("span", "sub", sub || text(item.q).slice(0, 80)));
    button.addEventListener("click", function () { open(item, true); });
    if (item === view.at) { button.setAttribute("aria-current", "true"); }
    item.button = button;
    return add(row, button);
  }
  function short(label) { return label === "equal" ? "=" : label === "invalid" ? "inv" : label || "\u00b7"; }
  function more() {
    view.items.slice(view.shown, view.shown + STEP).forEach(function (item) { list_.appendChild(entry(item)); });
    view.shown = Math.min(view.items.length, view.shown + STEP);
  }
  function refresh() {
    view.items = chosen();
    view.shown = 0;
    data.items.forEach(function (item) { item.button = null; });
    list_.textContent = "";
    more();
    count.textContent = view.items.length + " of " + data.items.length + (SCORES ? " answers" : " pairs");
    pick("b-random").disabled = !data.items.some(function (item) {
      return disagrees(item, Number(pick("f-arm").value));
    });
  }
  list_.addEventListener("scroll", function () {
    if (view.shown < view.items.length && list_.scrollTop + list_.clientHeight > list_.scrollHeight - 400) { more(); }
  });

  // --- one item ---
  function badge(words, kind) { return el("li", kind ? "badge " + kind : "badge", words); }
  function named(label) { return label === "A" || label === "B" ? "answer " + label : String(label); }
  function badges(item) {
    var made = el("ul", "badges");
    if (item.g) { add(made, badge("gold: " + named(item.g), "folk")); }
    else if (!SCORES && data.items.some(function (each) { return each.g; })) { add(made, badge("no gold", "folk")); }
    if (item.h) { add(made, badge("people: " + item.h.l + (item.h.t ? " \u2014 " + item.h.t : ""), "folk")); }
    if (item.ch !== undefined) {
      add(made, badge(item.ch ? "own checks passed" : "own checks not passed", item.ch ? "good" : "bad"));
    }
    if (item.c) { add(made, badge(item.c)); }
    if (item.x) { add(made, badge("planted fault: " + item.x.replace(/_/g, " "))); }
    Object.keys(item.e || {}).forEach(function (name) { add(made, badge(name + ": " + item.e[name])); });
    return made;
  }
  function answerBox(item, side) {
    var at = side === "A" ? 0 : 1, box = el("div", "box"), head = el("header");
    add(head, el("strong", "", "Answer " + side + (item.m && item.m[at] ? " \u2014 " + item.m[at] : "")));
    if (item.g === side) { add(head, el("span", "badge folk", "gold")); }
    data.arms.forEach(function (arm, place) {
      if (decided(item, place) === side) { add(head, el("span", "badge pick", arm.name)); }
    });
    add(head, el("span", "soft", item.n[at].toLocaleString("en") + " characters"));
    return add(box, head, textBox(text(side === "A" ? item.a : item.b), "answer " + side));
  }
  function votesBox(item) {
    if (!item.v) { return null; }
    var groups = { A: [], B: [], equal: [] }, made = el("ul", "badges");
    item.v.forEach(function (vote) { groups[vote[1]].push(vote[0]); });
    ["A", "B", "equal"].forEach(function (label) {
      if (groups[label].length) {
        add(made, badge(named(label) + ": " + groups[label].length + " (" + groups[label].join(", ") + ")", "folk"));
      }
    });
    return add(el("div", "asked"), el("h4", "", "What people voted"), made);
  }
  function said(order) {
    var place = order[0] === "A" ? "first" : order[0] === "B" ? "second" : order[0];
    return order[1] && (order[0] === "A" || order[0] === "B") ? place + " \u2192 " + order[1] : place;
  }
  function replies(judge) {
    var made = el("table", "chips"), head = el("tr"), body = el("tbody");
    ["repeat", "A shown first", "B shown first"].forEach(function (words) {
      var cell = el("th", "", words);
      cell.scope = "col";
      head.appendChild(cell);
    });
    judge.r.forEach(function (orders, number) {
      var row = el("tr");
      add(row, el("td", "", number + 1), el("td", "", said(orders.o)), el("td", "", said(orders.s)));
      body.appendChild(row);
    });
    return add(made, add(el("thead"), head), body);
  }
  function reasons(judge) {
    var seen = {}, order = [], made = el("ul", "why");
    judge.r.forEach(function (orders, number) {
      [["o", "A first"], ["s", "B first"]].forEach(function (pair) {
        var reply = orders[pair[0]], key = said(reply) + "\u0000" + reply[2] + "\u0000" + (reply[3] || "");
        if (!seen[key]) { seen[key] = { reply: reply, where: [] }; order.push(key); }
        seen[key].where.push((judge.r.length > 1 ? "repeat " + (number + 1) + ", " : "") + pair[1]);
      });
    });
    order.forEach(function (key) {
      var found = seen[key], many = found.where.length;
      var where = many > 4 ? many + " replies" : found.where.join("; "), row = el("li");
      add(row, el("div", "soft small", where + " \u2014 " + said(found.reply)));
      var box = el("div", "said", text(found.reply[2]) || "(no reason given)");
      box.dir = "auto";
      add(row, box);
      if (found.reply.length > 3) {
        var raw = el("div", "said mono", text(found.reply[3]));
        raw.dir = "auto";
        add(row, raw);
      }
      made.appendChild(row);
    });
    return made;
  }
  function judgeBox(item, arm, place) {
    var judge = judgeOf(item, place), box = el("div", "verdict"), head = el("div", "verdict-head");
    add(head, el("h4", "", arm.name));
    if (!judge) { return add(box, head, el("p", "soft", "No reply of this judge on this pair.")); }
    var wrong = judge.f.indexOf("wrong") >= 0, kind = !item.g || judge.l === null ? "" : wrong ? "bad" : "good";
    var sign = !item.g ? "" : wrong ? " \u2715" : " \u2713";
    var words = judge.l === null ? "no decision" : "decides " + named(judge.l) + sign;
    add(head, el("span", "badge " + kind, words));
    judge.f.forEach(function (flag) {
      if (flag !== "wrong") { add(head, el("span", "badge", data.flags[flag])); }
    });
    var words_ = el("details");
    words_.open = !arm.control;
    return add(box, head, replies(judge), add(words_, el("summary", "", "What it said"), reasons(judge)));
  }
  function scoreBox(item, arm, place) {
    var judge = judgeOf(item, place), box = el("div", "verdict"), head = el("div", "verdict-head");
    var words = !judge || judge.l === null ? "no verdict" : "score " + judge.l;
    add(head, el("h4", "", arm.name), el("span", judge && judge.l !== null ? "badge pick" : "badge bad", words));
    var said = el("p", "said wide", (judge && text(judge.w)) || "(no reason given)");
    said.dir = "auto";
    return add(box, head, said);
  }
  function turns(item) {
    if (!item.p) { return null; }
    var made = el("details", "asked");
    made.appendChild(el("summary", "", "Earlier turns (" + item.p.length + ")"));
    item.p.forEach(function (turn) {
      made.appendChild(textBox(text(turn[0]), "earlier question"));
      if (turn.length > 1) {
        var sides = el("div", "answers");
        turn.slice(1).forEach(function (number, at) {
          var side = at ? "B" : "A";
          add(sides, add(el("div", "box"), add(el("header"), el("strong", "", "Earlier answer " + side)),
            textBox(text(number), "earlier answer " + side)));
        });
        made.appendChild(sides);
      }
    });
    return made;
  }
  function fold(number, title) {
    if (number === undefined) { return null; }
    return add(el("details", "asked"), el("summary", "", title), textBox(text(number), title));
  }
  function draw(item) {
    detail.textContent = "";
    var head = el("div", "item-head"), title = el("h3", "", item.id), tools = el("div", "tools");
    title.id = "item-title";
    title.tabIndex = -1;
    [["Previous", -1], ["Next", 1]].forEach(function (pair) {
      var button = el("button", "", pair[0]);
      button.type = "button";
      button.addEventListener("click", function () { step(pair[1]); });
      tools.appendChild(button);
    });
    var raw = el("button", "", "Raw text");
    raw.type = "button";
    raw.setAttribute("aria-pressed", String(view.raw));
    raw.addEventListener("click", function () { view.raw = !view.raw; draw(item); });
    var link = el("a", "small", "Link to this pair");
    link.href = "#item=" + encodeURIComponent(item.id);
    add(tools, raw, link);
    add(detail, add(head, title, tools), badges(item));
    if (item.w) { add(detail, add(el("p", "wide"), el("strong", "", "Why gold: "), el("span", "", item.w))); }
    add(detail, turns(item));
    add(detail, add(el("div", "asked"), el("h4", "", "Question"), textBox(text(item.q), "question")));
    add(detail, fold(item.ru, "Rubric"), fold(item.ref, "Reference answer"));
    if (SCORES) {
      var words = el("header");
      add(words, el("strong", "", "Answer"), el("span", "soft", item.n[0].toLocaleString("en") + " characters"));
      add(detail, add(el("div", "box asked"), words, textBox(text(item.a), "answer")));
    } else {
      add(detail, add(el("div", "answers"), answerBox(item, "A"), answerBox(item, "B")), votesBox(item));
    }
    var judges = el("div", "judges");
    data.arms.forEach(function (arm, place) { add(judges, (SCORES ? scoreBox : judgeBox)(item, arm, place)); });
    add(detail, judges);
  }
  function open(item, record) {
    if (view.at && view.at.button) { view.at.button.removeAttribute("aria-current"); }
    view.at = item;
    if (item.button) { item.button.setAttribute("aria-current", "true"); }
    draw(item);
    if (record || location.hash) { document.body.classList.add("chosen"); }
    if (record) { history.replaceState(null, "", "#item=" + encodeURIComponent(item.id)); }
  }
  function reveal(item) {
    while (!item.button && view.shown < view.items.length) { more(); }
    if (item.button && list_.scrollHeight > list_.clientHeight) {
      var top = item.button.offsetTop - list_.offsetTop;
      if (top < list_.scrollTop || top + 50 > list_.scrollTop + list_.clientHeight) { list_.scrollTop = top - 60; }
    }
  }
  function step(by) {
    var at = view.items.indexOf(view.at), next = view.items[at < 0 ? 0 : at + by];
    if (next) { open(next, true); reveal(next); }
  }
  function random() {
    var place = Number(pick("f-arm").value);
    var wrong = view.items.filter(function (item) { return item !== view.at && disagrees(item, place); });
    if (!wrong.length) { wrong = data.items.filter(function (item) { return disagrees(item, place); }); }
    if (wrong.length) {
      var item = wrong[Math.floor(Math.random() * wrong.length)];
      open(item, true);
      reveal(item);
    }
  }
  function byLink() {
    var found = /^#item=(.*)$/.exec(location.hash), wanted = null;
    if (!found) { return false; }
    try { wanted = decodeURIComponent(found[1]); } catch (error) { return false; }
    var item = data.items.filter(function (each) { return each.id === wanted; })[0];
    if (!item) { return false; }
    open(item, false);
    reveal(item);
    desk.scrollIntoView();
    return true;
  }

  // --- start ---
  ["f-arm", "f-show", "f-category", "f-model", "f-fault", "f-sort"].forEach(function (name) {
    if (pick(name)) { pick(name).addEventListener("change", refresh); }
  });
  var waiting = null;
  pick("f-text").addEventListener("input", function () {
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 200);
  });
  pick("b-random").addEventListener("click", random);
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { return; }
    if (event.key === "j") { step(1); }
    else if (event.key === "k") { step(-1); }
    else if (event.key === "r") { random(); }
    else if (event.key === "/") { event.preventDefault(); pick("f-text").focus(); }
  });
  window.addEventListener("hashchange", byLink);
  Array.prototype.forEach.call(document.querySelectorAll(".needs-script"), function (part) {
    part.classList.remove("hide");
  });
  refresh();
  if (!byLink() && view.items.length) { open(view.items[0], false); }
}());
"""
