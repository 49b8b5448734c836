"""The page of judge.py's files: scores given, words by score, categories, runs compared with flips, people's labels.

Takes parsed files of `grade`, `compare` and `human`; every figure is one of their own summaries, and where their own
items say something else a warning stands above. The texts of strangers pass through the same two doors as on every
page: escaped tags and data shown by textContent. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import judged_check
import page_items
import page_judged_tables as judged_tables
import pictures
import tables
from page_judged_tables import category_means, counts_of, judges_of, mean_of
from page_parts import Markup, document, folded, joined, listed, table, tag
from page_sections import choices, counted, level_filter, signed, tabled
from pictures import Dot, Part, Row

# === Constants ===

FIGURES = "The figures that differ"
SCORE_AXIS = pictures.Axis(1.0, 5.0, (1.0, 2.0, 3.0, 4.0, 5.0), 0, None)
COMPARE_KEY = (
    ("judge", "{a} wins"),
    ("none", "equal in both orders"),
    ("first", "the order decides"),
    ("second", "{b} wins"),
    ("unread", "no verdict"),
)
PAIR_SHOWS = (
    ("all", "all pairs"),
    ("inconsistent", "the order decides"),
    ("invalid", "a reply without a verdict"),
    ("differ", "judges decide differently"),
)
SCORE_SHOWS = (
    ("all", "all answers"),
    *[(f"score-{score}", f"score {score}") for score in judged_tables.SCORES],
    ("none", "no verdict"),
    ("human", "people and judge differ"),
    ("differ", "judges differ"),
    ("failed-checks", "own checks not passed"),
)


# === Small words ===


def interval_words(shown: dict[str, Any], digits: int = 2) -> str:
    if shown.get("low") is None:
        return "no interval"
    low, high = (tables.number(shown[key], digits).replace("-", "\u2212") for key in ("low", "high"))
    return f"{low} to {high}"


def range_words(shown: dict[str, Any], digits: int) -> str:
    return "no interval" if shown.get("low") is None else f"95% interval {interval_words(shown, digits)}"


def figure_row(name: str, shown: dict[str, Any], kind: str, lead: bool, small: str | None = None) -> Row:
    """One figure with its interval as a row of a picture."""
    mark = Dot(shown["value"], shown.get("low"), shown.get("high"), kind, f"{name}: {tables.with_interval(shown, 2)}")
    value = "-" if shown["value"] is None else tables.number(shown["value"], 2)
    return Row(name, small, (mark,), joined((tag("b", value), f" {interval_words(shown)}")), lead)


def kind_of(name: str) -> str:
    return "control" if name.startswith("control-") else "judge"


def count_bars(counts: Sequence[tuple[str, float, str]], kind: str = "none") -> Markup:
    """Bars of one scale: (label, amount, figure in words)."""
    top = max((amount for _, amount, _ in counts), default=0) or 1
    rows = []
    for label, amount, words in counts:
        share = f"{100 * amount / top:.3f}%"
        shape = Markup(f'<rect x="0" y="15%" width="{share}" height="70%" class="{kind}"></rect>')
        drawn = tag("svg", shape, aria_hidden="true", focusable="false")
        rows.append(pictures.plot_row(pictures.label_cell(label, None, False), drawn, tag("b", words)))
    return tag("div", *rows, class_="plot narrow")


def big(value: float | None, digits: int, label: str, name: str, below: str) -> Markup:
    text = "\u2013" if value is None else tables.number(value, digits).replace("-", "\u2212")
    return tag(
        "div",
        tag("div", label, class_="soft small"),
        tag("div", text, class_="figure-big"),
        tag("div", name, class_="hero-name"),
        tag("div", below, class_="hero-range"),
    )


def states_box(summary: dict[str, Any], done: str, count: object) -> Markup:
    """How many verdicts there are, and what became of the rest."""
    keys = [(done, count), *[(key, summary.get(key)) for key in ("invalid", "failed", "missing")]]
    parts = [
        tag("li", tag("b", str(value)), tag("span", key, class_="small")) for key, value in keys if value is not None
    ]
    codes = ", ".join(f"{code} {n}" for code, n in (summary.get("codes") or {}).items())
    open_ones = (summary.get("failed") or 0) + (summary.get("missing") or 0)
    words = "Incomplete: the figures are of the replies that are there."
    alert = tag("p", words, class_="alert") if open_ones else None
    return tag(
        "div",
        tag("h2", "Replies"),
        tag("ul", *parts, class_="states"),
        tag(
            "p",
            "invalid: a reply without a usable verdict; failed: no reply. Neither becomes a score, a tie or a loss."
            + (f" Reasons: {codes}." if codes else ""),
            class_="soft small",
        ),
        alert,
        class_="fact",
    )


def contradiction_alert(data: dict[str, Any]) -> list[Markup]:
    """A warning, and the figures, where the summary of a file is not that of its items."""
    found = judged_check.section_of(data)
    return [tag("div", tag("p", f"{found[0][0]}.", class_="alert wide"), tabled(found[0], FIGURES))] if found else []


# === Grade ===


def grade_intro(data: dict[str, Any], anchor: str = "overview", heading: str = "h1") -> Markup:
    """The mean score and where it comes from."""
    run, summary = data["run"], data["judge"]
    judges = judges_of(summary)
    lead, mean = next(iter(judges)), mean_of(summary)
    rows = [figure_row(name, mean_of(each), kind_of(name), name == lead) for name, each in judges.items()]
    many = counted(len(data["results"]), "answer", "answers")
    task_set = " ".join(str(run[key]) for key in ("task_set", "task_set_version") if run.get(key))
    eyebrow = " \u00b7 ".join(part for part in (task_set, many) if part)
    title = f"{run.get('model') or 'answers of a model not named'}, graded by {summary.get('judge_model')}"
    left = big(mean["value"], 2, "mean score, 1 to 5", lead, range_words(mean, 2))
    facts = [states_box(summary, "graded", summary.get("graded")), grade_run_box(run, summary)]
    return tag(
        "section",
        tag("p", eyebrow, class_="eyebrow"),
        tag(heading, title),
        *contradiction_alert(data),
        *kinship_alert(summary.get("self_judged"), summary.get("same_family")),
        *unguided_alert(summary.get("unguided"), len(data["results"])),
        tag("div", left, tag("div", pictures.dot_plot(SCORE_AXIS, rows)), class_="hero"),
        grade_meaning(judges),
        tag("div", *facts, class_="facts"),
        class_="intro",
        id=anchor,
    )


def kinship_alert(same: Any, family: Any) -> list[Markup]:
    if same:
        return [tag("p", "The judge grades its own answers.", class_="alert wide")]
    if family:
        return [tag("p", f"Judge and judged model are of one family ({family}).", class_="alert wide")]
    return []


def unguided_alert(count: Any, n: int) -> list[Markup]:
    """What a score means where the judge was told nothing but the task."""
    if not count:
        return []
    words = f"{count} of {n} answers had neither rubric nor reference: there the judge went by its own taste."
    return [tag("p", words, class_="alert wide")]


def grade_meaning(judges: dict[str, dict[str, Any]]) -> Markup:
    says = "The mean of the scores the judge gave, and how far other tasks of the same kind would move it."
    denies = (
        "A score says what this judge thinks, not how good the answers are. How far to trust it shows only beside "
        "people's labels: python3 -I judge.py human."
    )
    return tag(
        "div",
        tag("div", tag("h2", "What it means"), tag("p", says)),
        tag("div", tag("h2", "What it does not mean"), tag("p", denies)),
        class_="meaning",
    )


def grade_run_box(run: dict[str, Any], summary: dict[str, Any]) -> Markup:
    names = ("model", "quant", "engine", "engine_version", "settings", "checks_passed", "tasks")
    lines = [f"{name.replace('_', ' ')}: {run[name]}" for name in names if run.get(name) not in (None, "")]
    lines += [f"judged: {summary['date']}"] if summary.get("date") else []
    return tag("div", tag("h2", "The run"), listed(lines), class_="fact plain")


def grade_parts(data: dict[str, Any]) -> list[tuple[str, str, str, list[Markup | None]]]:
    """(anchor, name in the bar, title, content) of a graded run."""
    judges = judges_of(data["judge"])
    mean, scores, words, categories, *more = judged_tables.grade_sections(data)
    found = [
        ("scores", "Scores", "Which scores were given", [score_figures(data, judges), tabled(scores), tabled(mean)]),
        ("words", "Words", "Do longer answers score higher?", [words_figures(judges), tabled(words)]),
    ]
    if categories[2]:
        lead = next(iter(judges))
        rows = [
            figure_row(
                level, shown, kind_of(lead), False, counted(shown["n"], "answer", "answers") if shown["n"] else None
            )
            for level, shown in category_means(judges[lead]).items()
        ]
        picture = pictures.figure(f"Mean score by {lead}", None, pictures.dot_plot(SCORE_AXIS, rows))
        found.append(("categories", "Categories", "Score by category", [picture, tabled(categories)]))
    if more:
        found.append(
            ("more", "Checks and panel", "Beside the scores", [table(part[1], part[2], part[0]) for part in more])
        )
    return found


def score_figures(data: dict[str, Any], judges: dict[str, dict[str, Any]]) -> Markup:
    figures = []
    for name, summary in judges.items():
        counts = counts_of(data, name, summary)
        bars = count_bars([(score, counts[score], str(counts[score])) for score in judged_tables.SCORES])
        figures.append(pictures.figure(name, None, bars))
    return tag("div", *figures, class_="pair")


def words_figures(judges: dict[str, dict[str, Any]]) -> Markup:
    figures = []
    for name, summary in judges.items():
        words = summary.get("mean_words_by_score") or {}
        bars = count_bars(
            [(score, words[score], f"{words[score]:g} words") for score in judged_tables.SCORES if score in words]
        )
        length = summary.get("length")
        reading = None
        if isinstance(length, dict) and length.get("spearman") is not None:
            shown = {**length, "value": length["spearman"]}
            reading = f"Rank correlation of words and score {signed(shown['value'])}, {interval_words(shown)}."
        figures.append(pictures.figure(name, reading, bars))
    note = (
        "Mean words of the answers that got each score. Longer may be better, so this is a hint and no proof of bias."
    )
    return joined((tag("p", note, class_="reading"), tag("div", *figures, class_="pair")))


# === Compare ===


def compare_intro(data: dict[str, Any], anchor: str = "overview", heading: str = "h1") -> Markup:
    """The win rate and what became of every pair."""
    summary, names = data["judge"], list(data["runs"])
    judges = judges_of(summary)
    lead, rate = next(iter(judges)), summary.get("win_rate") or {"value": None}
    title = f"{names[0]} against {names[1]}, judged by {summary.get('judge_model')}"
    left = big(rate["value"], 3, f"win rate of {names[0]}", lead, range_words(rate, 3))
    bars = [(name, None, outcome_parts(each, names), won_words(each), name == lead) for name, each in judges.items()]
    drawn = joined((outcome_key(names), pictures.bar_plot(bars)))
    kin = [
        kinship_alert(found.get("self_judged"), found.get("same_family"))
        for found in (summary.get("kinship") or {}).values()
    ]
    eyebrow = f"{counted(len(data['pairs']), 'pair', 'pairs')} \u00b7 both orders"
    says = f"Share of pairs that {names[0]} wins, an equal pair and one whose two orders disagree as half a win."
    denies = "It is this judge's taste on these tasks. Where the order decides, nothing is known about the answers."
    return tag(
        "section",
        tag("p", eyebrow, class_="eyebrow"),
        tag(heading, title),
        *contradiction_alert(data),
        *[alert for each in kin for alert in each],
        tag("div", left, tag("div", drawn), class_="hero"),
        tag(
            "div",
            tag("div", tag("h2", "What it means"), tag("p", says)),
            tag("div", tag("h2", "What it does not mean"), tag("p", denies)),
            class_="meaning",
        ),
        tag("div", states_box(summary, "compared", summary.get("compared")), class_="facts"),
        class_="intro",
        id=anchor,
    )


def outcome_parts(summary: dict[str, Any], names: list[str]) -> list[Part]:
    """wins, equal, flips, losses, failures as parts of a bar."""
    keys = ("wins_a", "ties", "order_flips", "wins_b", "judge_failures")
    return [
        Part(int(summary.get(key) or 0), kind, words.format(a=names[0], b=names[1]))
        for key, (kind, words) in zip(keys, COMPARE_KEY)
    ]


def outcome_key(names: list[str]) -> Markup:
    return pictures.key(
        [
            (f"bar-{kind}" if kind == "judge" else kind, words.format(a=names[0], b=names[1]))
            for kind, words in COMPARE_KEY
        ]
    )


def won_words(summary: dict[str, Any]) -> str:
    flips = summary.get("order_flips")
    rate = summary.get("flip_rate")
    return "" if flips is None or rate is None else f"order decides {rate:.0%}"


def compare_parts(data: dict[str, Any]) -> list[tuple[str, str, str, list[Markup | None]]]:
    """(anchor, name in the bar, title, content) of runs compared."""
    found: list[tuple[str, str, str, list[Markup | None]]] = []
    pairings = judged_tables.pairings_of(data)
    for number, (a, b, judges) in enumerate(pairings, 1):
        bars = [(name, None, outcome_parts(each, [a, b]), won_words(each), False) for name, each in judges.items()]
        outcomes = judged_tables.pairing_section(a, b, judges)
        rates = judged_tables.rates_section(a, b, judges)
        content = [
            *([outcome_key([a, b]), pictures.bar_plot(bars)] if len(pairings) > 1 else []),
            rate_figure(a, judges),
            tabled(outcomes),
            tabled(rates, "The numbers by category") if rates[2] else None,
        ]
        found.append((f"pairing-{number}", f"{a} / {b}", f"{a} against {b}", content))
    rest = judged_tables.panel_section(data["judge"])
    rest += [part for part in judged_tables.compare_sections(data) if part[0].startswith("Bradley-Terry")]
    if rest:
        found.append(
            ("more", "Panel and ranking", "Beside the win rate", [table(part[1], part[2], part[0]) for part in rest])
        )
    return found


def rate_figure(a: str, judges: dict[str, dict[str, Any]]) -> Markup | None:
    """Win rate by category of the first judge that has categories."""
    name, summary = next(((name, one) for name, one in judges.items() if one.get("by_category")), (None, None))
    if name is None or summary is None:
        return None
    rows = []
    for level, shown in summary["by_category"].items():
        mark = Dot(shown["win_rate"], None, None, kind_of(name), f"{level}: {tables.number(shown['win_rate'])}")
        rows.append(Row(level, counted(shown["n"], "pair", "pairs"), (mark,), tag("b", f"{shown['win_rate']:.0%}")))
    return pictures.figure(f"Win rate of {a} by category, {name}", None, pictures.dot_plot(pictures.SHARES, rows))


# === People ===


def human_part(data: dict[str, Any]) -> list[Markup | None]:
    """People against the judge: measures, the scatter of scores, every disagreement."""
    measures, *rest = judged_tables.human_sections(data)
    picture = score_scatter(data) if data.get("cells") else None
    differing = rest[0] if rest else None
    return [
        table(measures[1], measures[2], measures[0]),
        picture,
        folded(differing[0], table(differing[1], differing[2], differing[0]), open_=len(differing[2]) <= 30)
        if differing
        else None,
    ]


def score_scatter(data: dict[str, Any]) -> Markup:
    """People's score by the judge's; the area of a spot is its number of answers."""
    axis = SCORE_AXIS._replace(low=0.6, high=5.4)
    top = max(cell["n"] for cell in data["cells"])
    spots = [
        pictures.Spot(
            cell["human"],
            cell["judge"],
            5 + 15 * (cell["n"] / top) ** 0.5,
            "judge" if cell["human"] == cell["judge"] else "people",
            str(cell["n"]),
            f"people {cell['human']:g}, judge {cell['judge']}: {counted(cell['n'], 'answer', 'answers')}",
        )
        for cell in data["cells"]
    ]
    words = "People's score and the judge's: " + "; ".join(spot.title for spot in spots)
    drawn = pictures.scatter(spots, axis, axis, ("people's score", "judge's score"), words, diagonal=True)
    reading = "On the dashed line judge and people say the same; above it the judge is kinder. Numbers count answers."
    key = pictures.key([("judge", "same score"), ("circle-people", "different"), ("ceiling", "agreement")])
    return pictures.figure("Judge against people", reading, key, drawn)


# === Items ===


def words_of(verdict: Any) -> str:
    return str(verdict.get("why") or "") if isinstance(verdict, dict) else ""


def score_items(data: dict[str, Any], human: dict[str, Any] | None) -> tuple[list[dict[str, Any]], page_items.Texts]:
    """Graded answers as the script reads them."""
    texts = page_items.Texts()
    people = {str(one["id"]): one for one in judged_tables.disagreements_of(human)} if human else {}
    names = list(judges_of(data["judge"]))
    found = []
    for item in data["results"]:
        verdicts = verdicts_of(item, names)
        checks = item.get("checks")
        entry = {
            "id": str(item.get("id")),
            "c": str(item.get("category") or "") or None,
            "q": texts.number(str(item.get("prompt") or "")),
            "ru": texts.number(str(item["rubric"])) if item.get("rubric") else None,
            "ref": texts.number(str(item["reference"])) if item.get("reference") else None,
            "a": texts.number(str(item.get("answer") or "")),
            "n": [len(str(item.get("answer") or ""))],
            "ch": checks.get("passed") if isinstance(checks, dict) else None,
            "j": [score_entry(verdict, texts) for verdict in verdicts],
            "h": people_entry(people.get(str(item.get("id")))),
        }
        found.append({key: value for key, value in entry.items() if value is not None})
    return found, texts


def verdicts_of(item: dict[str, Any], names: list[str]) -> list[Any]:
    """The verdict of each judge of a panel, the panel's own first; the one judge's alone."""
    inner = item.get("judges")
    if not isinstance(inner, dict):
        return [item.get("judge")]
    return [item.get("judge") if name == judged_tables.PANEL else inner.get(name) for name in names]


def score_entry(verdict: Any, texts: page_items.Texts) -> dict[str, Any]:
    score = verdict.get("score") if isinstance(verdict, dict) else None
    return {"l": score, "w": texts.number(words_of(verdict))}


def people_entry(found: dict[str, Any] | None) -> dict[str, Any] | None:
    return {"l": found["human"], "t": str(found.get("comment") or "")} if found else None


def pair_items(data: dict[str, Any], human: dict[str, Any] | None) -> tuple[list[dict[str, Any]], page_items.Texts]:
    """Compared pairs as the script reads them."""
    texts = page_items.Texts()
    names = judge_names(data)
    people = {str(one["id"]): one["human"] for one in judged_tables.disagreements_of(human)} if human else {}
    runs = list(data["runs"])
    found = []
    for pair in data["pairs"]:
        inner = pair.get("judges") if isinstance(pair.get("judges"), dict) else {names[0]: pair}
        entry = page_items.item_entry(
            {
                "item_id": str(pair.get("id")),
                "text": str(pair.get("prompt") or ""),
                "answer_a": str(pair.get("answer_a") or ""),
                "answer_b": str(pair.get("answer_b") or ""),
                "category": str(pair.get("category") or ""),
                "reference": pair.get("reference"),
                "gold": people.get(str(pair.get("id"))),
                **({"model_a": runs[0], "model_b": runs[1]} if len(runs) == 2 else {}),
            },
            [pair_entry(inner.get(name), texts, people.get(str(pair.get("id")))) for name in names],
            texts,
        )
        found.append(entry)
    return found, texts


def judge_names(data: dict[str, Any]) -> list[str]:
    """The judges that judged pairs themselves: not the panel, which only counts them."""
    return [name for name in judged_tables.pairings_of(data)[0][2] if name != judged_tables.PANEL]


def pair_entry(found: Any, texts: page_items.Texts, gold: str | None) -> dict[str, Any] | None:
    """One judge's two replies on a pair."""
    if not isinstance(found, dict):
        return None
    orders, label = {}, found.get("decision")
    for key, order in (("o", "original"), ("s", "swapped")):
        said = found.get(order)
        said = said if isinstance(said, dict) else {"choice": "failed", "why": "no reply"}
        choice = "failed" if said.get("state") == "failed" else said.get("choice")
        answer = None if choice == "failed" else page_items.answer_of(choice, order)
        orders[key] = [choice, answer, texts.number(words_of(said))]
    flags = {"flip": ["inconsistent"], "invalid": ["invalid"], "failed": ["failed"], "missing": ["failed"]}
    wrong = ["wrong"] if gold is not None and label is not None and label != gold else []
    return {"l": label, "f": [*wrong, *flags.get(str(found.get("kind")), [])], "r": [orders]}


# === Item section ===


def controls(kind: str, names: list[str], entries: list[dict[str, Any]]) -> Markup:
    """The filters of the item view."""
    scores = kind == "scores"
    shows = SCORE_SHOWS if scores else PAIR_SHOWS
    sorts = [("file", "file order"), ("length", "longest first" if scores else "length difference")]
    sorts += [("low", "lowest score first"), ("high", "highest score first")] if scores else []
    search = tag("input", id="f-text", type="search", autocomplete="off", spellcheck="false")
    return tag(
        "div",
        choices("f-arm", "Judge", [(str(place), name) for place, name in enumerate(names)]),
        choices("f-show", "Show", shows),
        level_filter("f-category", "Category", {entry["c"] for entry in entries if entry.get("c")}),
        choices("f-sort", "Sort", sorts),
        tag("label", "Text contains", search),
        tag("button", "Random disagreement", type="button", id="b-random"),
        class_="controls",
        role="search",
        aria_label="Filter the items",
    )


def items_section(kind: str, names: list[str], entries: list[dict[str, Any]]) -> Markup:
    """The frame of the item view, and a plain table for readers without script."""
    head = ("item", "category", *names)
    body = [
        (entry["id"], entry.get("c") or "", *[str((found or {}).get("l") or "-") for found in entry["j"]])
        for entry in entries[: page_items.NOSCRIPT_ROWS]
    ]
    plain = tag(
        "noscript",
        tag("p", "Reading the texts needs JavaScript; these are all verdicts."),
        table(head, body, "Verdicts"),
    )
    return tag(
        "section",
        tag("h2", "Every answer" if kind == "scores" else "Every pair"),
        page_items.frame(controls(kind, names, entries)),
        plain,
        id="pairs",
    )


# === Page ===


def beside(files: list[dict[str, Any]], measured: set[str]) -> tuple[str, list[Markup]]:
    """(name in the bar, sections) of judged files on the page of a run; the first section has the anchor 'own'.

    measured: names and models of the judges that the run measures: a judge that is not among them is pointed out. The
    texts of the answers are left to a page of their own.
    """
    kinds = {str(judged_tables.kind_of_file(data)): data for data in files}
    lead, human = kinds.get("grade") or kinds.get("compare"), kinds.get("human")
    parts: list[tuple[str, str, str, list[Markup | None]]] = []
    found = []
    if lead is None:
        found.append(human_intro(human or {}, "own", "h2"))
    else:
        made = grade_intro if "grade" in kinds else compare_intro
        found.append(made(lead, "own", "h2"))
        parts = grade_parts(lead) if "grade" in kinds else compare_parts(lead)
        found += unmeasured(judge_names_of(lead), measured)
    if human:
        parts.insert(0, ("people", "People", "People as the measure", human_part(human)))
    found += [tag("section", tag("h2", title), *content, id=f"own-{anchor}") for anchor, _, title, content in parts]
    if lead is not None:
        found.append(tag("section", verdict_list(lead), id="own-verdicts"))
    return "Your own results", found


def judge_names_of(data: dict[str, Any]) -> list[str]:
    """The judges of a graded or compared file that are models: not a panel, which only counts them."""
    return [name for name in judges_of(data["judge"]) if name != judged_tables.PANEL]


def unmeasured(names: list[str], measured: set[str]) -> list[Markup]:
    """A warning for judges of your results that the run above says nothing about."""
    others = [name for name in names if name not in measured]
    if not others:
        return []
    words = f"{', '.join(others)}: not a judge of the run above, which therefore says nothing about these verdicts."
    return [tag("p", words, class_="alert wide")]


def verdict_list(data: dict[str, Any]) -> Markup:
    """Every verdict of a judged file as a folded table."""
    if judged_tables.kind_of_file(data) == "grade":
        names = list(judges_of(data["judge"]))
        body = [
            (str(item.get("id")), str(item.get("category") or ""), *[shown_score(v) for v in verdicts_of(item, names)])
            for item in data["results"]
        ]
    else:
        names = [str(data["judge"].get("judge_model"))]
        body = [
            (str(pair.get("id")), str(pair.get("category") or ""), str(pair.get("decision") or "-"))
            for pair in data["pairs"]
        ]
    words = f"Every verdict ({len(body):,}); report.py with the judged file alone makes a page to read the texts on"
    return folded(words, table(("item", "category", *names), body, "Verdicts"))


def shown_score(verdict: Any) -> str:
    return str(verdict["score"]) if isinstance(verdict, dict) and verdict.get("score") is not None else "-"


def page_of(files: list[dict[str, Any]]) -> bytes:
    """The page of one judged or compared file, with people's labels beside it where a human file is given."""
    kinds = {str(judged_tables.kind_of_file(data)): data for data in files}
    human = kinds.get("human")
    lead = kinds.get("grade") or kinds.get("compare")
    parts: list[tuple[str, str, str, list[Markup | None]]] = []
    main, data_blocks, title = [], Markup(""), "people and judge"
    if lead is not None:
        kind = "scores" if "grade" in kinds else "pairs"
        main.append(grade_intro(lead) if kind == "scores" else compare_intro(lead))
        parts = grade_parts(lead) if kind == "scores" else compare_parts(lead)
        entries, texts = score_items(lead, human) if kind == "scores" else pair_items(lead, human)
        names = list(judges_of(lead["judge"])) if kind == "scores" else judge_names(lead)
        arms = [{"name": name, "control": name.startswith("control-")} for name in names]
        data_blocks = page_items.ItemData(entries, texts, 0, None).embedded(arms, 0, kind)
        title = str(lead["judge"].get("judge_model"))
    else:
        main.append(human_intro(human or {}))
    if human:
        parts.insert(0, ("people", "People", "People as the measure", human_part(human)))
    nav = [("overview", "Overview"), *[(anchor, name) for anchor, name, _, _ in parts]]
    main += [tag("section", tag("h2", heading), *content, id=anchor) for anchor, _, heading, content in parts]
    if lead is not None:
        main.append(items_section(kind, names, entries))
        nav.append(("pairs", "Every answer" if kind == "scores" else "Every pair"))
    foot = "One file, nothing loaded, nothing sent. Every figure is in the summary of the judged file."
    return document(f"{title} \u2014 judge report", nav, main, foot, data_blocks)


def human_intro(human: dict[str, Any], anchor: str = "overview", heading: str = "h1") -> Markup:
    """A human file alone: who labelled what."""
    n = human.get("scored", human.get("labelled"))
    whose = f" on answers of {human['model']}" if human.get("model") else ""
    words = f"{counted(n or 0, 'labelled item', 'labelled items')}{whose}, dated {human.get('date')}."
    judge = human.get("judge_model")
    return tag(
        "section",
        tag("p", str(human.get("mode")), class_="eyebrow"),
        tag(heading, f"{judge} against people" if judge else "People's labels"),
        tag("p", words, class_="lede"),
        class_="intro",
        id=anchor,
    )
