"""Pictures of a result: intervals, bars, dumbbells, scatter, shaded tables.

A picture is a grid of rows: label, plot, figure in words. The plot is an SVG whose horizontal places are percentages,
so lines stretch with the page while text and dots keep their size; what it shows stands in words beside it. Colours are
classes of the style sheet. Shows figures that `summary.py` worked out; only places on an axis are computed here. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from page_parts import Markup, joined, tag

# === Constants ===

ROW_MIDDLE = "50%"
SHADES = 6
MIN_INSIDE = 0.055  # a bar part narrower than this share of the whole holds no number


class Axis(NamedTuple):
    """A horizontal scale from low to high with its ticks; `zero` is drawn stronger where it lies inside."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 1
    zero: float | None = 0.0
    percent: bool = False

    def place(self, value: float) -> str:
        """Where a value stands, in percent of the width; values outside are put at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(1.0, max(0.0, share)):.3f}%"

    def text(self, value: float) -> str:
        if self.percent:
            return f"{value:.0%}"
        text = f"{value:.{self.digits}f}"
        return text.replace("-", "\u2212") if float(text) else text.replace("-", "")


class Dot(NamedTuple):
    """One mark in a row: value with interval (None: none), colour class, and the words shown when pointed at."""

    value: float | None
    low: float | None
    high: float | None
    kind: str  # judge | control | people
    title: str
    hollow: bool = False
    diamond: bool = False


class Row(NamedTuple):
    """One row of a picture: label with a second line, marks, the figure in words."""

    label: str
    small: str | None
    dots: Sequence[Dot]
    value: object
    lead: bool = False
    stem: bool = False  # a line between the first and the last mark


SHARES = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=True)


def kappa_axis(values: Iterable[float | None]) -> Axis:
    """The axis for kappa: 0 to 1, further down only where a figure is."""
    lowest = min((value for value in values if value is not None), default=0.0)
    step = 0.2 if lowest >= -0.2 else 0.5
    low = 0.0 if lowest >= 0 else max(-1.0, math.floor(lowest / step) * step)
    ticks = tuple(round(low + step * place, 1) for place in range(round((1 - low) / step) + 1))
    return Axis(low, 1.0, ticks)


# === Marks ===


def grid(axis: Axis) -> list[Markup]:
    """The axis lines through one row."""
    return [
        tag("line", x1=axis.place(tick), x2=axis.place(tick), y1="-1%", y2="101%", class_=f"{kind}-line")
        for tick in axis.ticks
        for kind in ("zero" if tick == axis.zero and tick > axis.low else "grid",)
    ]


def dot(axis: Axis, mark: Dot) -> list[Markup]:
    """Interval line and dot of one mark; nothing when there is no value."""
    if mark.value is None:
        return []
    parts = []
    if mark.low is not None and mark.high is not None:
        ends = {"x1": axis.place(mark.low), "x2": axis.place(mark.high)}
        parts.append(tag("line", **ends, y1=ROW_MIDDLE, y2=ROW_MIDDLE, class_=f"range {mark.kind}"))
    style = f"dot {mark.kind}" + (" hollow" if mark.hollow else "")
    title = tag("title", mark.title)
    if mark.diamond:
        shape = tag("g", title, Markup('<path d="M0 -9L5 0L0 9L-5 0Z"/>'), class_=style)
        inner = Markup(str(shape))
        parts.append(
            tag("svg", inner, x=axis.place(mark.value), y=ROW_MIDDLE, width="1", height="1", overflow="visible")
        )
        return parts
    circle = f'<circle cx="{axis.place(mark.value)}" cy="{ROW_MIDDLE}" r="6.5" class="{style}">{title}</circle>'
    return [*parts, Markup(circle)]


def stem(axis: Axis, dots: Sequence[Dot]) -> list[Markup]:
    """The line that joins the marks of a dumbbell."""
    values = [mark.value for mark in dots if mark.value is not None]
    if len(values) < 2:
        return []
    ends = {"x1": axis.place(min(values)), "x2": axis.place(max(values))}
    return [tag("line", **ends, y1=ROW_MIDDLE, y2=ROW_MIDDLE, class_="stem control")]


def ceiling_line(axis: Axis, value: float | None) -> list[Markup]:
    """The dashed line of what people reach, through one row."""
    if value is None:
        return []
    return [tag("line", x1=axis.place(value), x2=axis.place(value), y1="-1%", y2="101%", class_="ceiling")]


# === Rows of marks ===


def label_cell(label: str, small: str | None, lead: bool) -> Markup:
    return tag("div", label, tag("small", small) if small else None, class_="label lead" if lead else "label")


def plot_row(label: Markup, drawn: Markup, value: object, kind: str = "drawn") -> Markup:
    return tag("div", label, tag("div", drawn, class_=kind), tag("div", value, class_="value"), class_="plot-row")


def axis_row(axis: Axis) -> Markup:
    """The ticks below the rows."""
    texts = []
    for place, tick in enumerate(axis.ticks):
        anchor = "start" if tick == axis.low else "end" if tick == axis.high else "middle"
        spare = "spare" if (len(axis.ticks) - 1 - place) % 2 else None  # hidden where the plot is narrow
        texts.append(tag("text", axis.text(tick), x=axis.place(tick), y="1rem", text_anchor=anchor, class_=spare))
    drawn = tag("svg", *texts, aria_hidden="true", focusable="false")
    return plot_row(tag("div", class_="label"), drawn, "", "drawn ticks")


def dot_plot(axis: Axis, rows: Sequence[Row], ceiling: float | None = None) -> Markup:
    """Rows of marks over one axis; ceiling: a dashed line through all of them."""
    made = []
    for row in rows:
        marks = [part for mark in row.dots for part in dot(axis, mark)]
        joint = stem(axis, row.dots) if row.stem else []
        drawn = tag("svg", *grid(axis), *ceiling_line(axis, ceiling), *joint, *marks, aria_hidden="true")
        made.append(plot_row(label_cell(row.label, row.small, row.lead), drawn, row.value))
    return tag("div", *made, axis_row(axis), class_="plot")


# === Bars ===


class Part(NamedTuple):
    """One part of a stacked bar."""

    amount: int
    kind: str  # first | none | second | unread | blank
    name: str


def bar(parts: Sequence[Part]) -> Markup:
    """A bar whose parts stand in the ratio of their counts, with the counts inside where they fit."""
    total = sum(part.amount for part in parts)
    drawn, start = [], 0.0
    for part in parts:
        if not part.amount:
            continue
        share = part.amount / total
        words = tag("title", f"{part.name}: {part.amount} of {total}")
        place = f'x="{100 * start:.3f}%" y="15%" width="{100 * share:.3f}%" height="70%"'
        drawn.append(Markup(f'<rect {place} class="{part.kind}">{words}</rect>'))
        if share >= MIN_INSIDE:
            middle = {"x": f"{100 * (start + share / 2):.3f}%", "y": "50%", "dy": ".35em", "text_anchor": "middle"}
            drawn.append(tag("text", part.amount, **middle, class_=f"in-bar on-{part.kind}"))
        start += share
    return tag("svg", *drawn, aria_hidden="true", focusable="false")


def bar_plot(rows: Sequence[tuple[str, str | None, Sequence[Part], str, bool]]) -> Markup:
    """Stacked bars: (label, second line, parts, figure in words, lead)."""
    made = [plot_row(label_cell(label, small, lead), bar(parts), value) for label, small, parts, value, lead in rows]
    return tag("div", *made, class_="plot")


# === Keys ===


def key(entries: Iterable[tuple[str, str]]) -> Markup:
    """What the marks mean: (kind of mark, words). Kinds: judge control people ceiling first none second unread."""
    made = []
    for kind, words in entries:
        if kind == "ceiling":
            mark: Any = tag("line", x1="0", x2="100%", y1="50%", y2="50%", class_="ceiling")
        elif kind in ("first", "none", "second", "unread", "blank", "bar-judge"):
            mark = tag("rect", x="0", y="10%", width="100%", height="80%", class_=kind.replace("bar-", ""))
        elif kind == "people":
            diamond = tag("g", Markup('<path d="M0 -7L4 0L0 7L-4 0Z"/>'), class_="dot people")
            mark = tag("svg", diamond, x="50%", y="50%", width="1", height="1", overflow="visible")
        else:
            mark = tag("circle", cx="50%", cy="50%", r="5.5", class_=f"dot {kind}".replace("circle-", ""))
        made.append(tag("li", tag("svg", mark, aria_hidden="true", focusable="false"), words))
    return tag("ul", *made, class_="key")


# === Scatter ===


class Spot(NamedTuple):
    """One spot of a scatter: place, size as radius in pixels, colour class, name beside it, words when pointed at."""

    x: float
    y: float
    radius: float
    kind: str
    name: str
    title: str


def nice_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Round numbers from at or below low to at or above high."""
    raw = (high - low) / about or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return tuple(round(step * place, 10) for place in range(first, last + 1))


def scatter(
    spots: Sequence[Spot], x: Axis, y: Axis, names: tuple[str, str], words: str, diagonal: bool = False
) -> Markup:
    """Spots over two axes; words: the text alternative."""
    parts = []
    for tick in y.ticks:
        level = upward(y, tick)
        parts.append(tag("line", x1="0", x2="100%", y1=level, y2=level, class_="grid-line"))
        parts.append(tag("text", y.text(tick), x="0", y=level, dx="-.5em", dy=".35em", text_anchor="end"))
    for tick in x.ticks:
        parts.append(tag("line", x1=x.place(tick), x2=x.place(tick), y1="0", y2="100%", class_="grid-line"))
        parts.append(tag("text", x.text(tick), x=x.place(tick), y="100%", dy="1.3em", text_anchor="middle"))
    if diagonal:
        parts.append(tag("line", x1="0", y1="100%", x2="100%", y2="0", class_="ceiling"))
    for spot in spots:
        at = f'cx="{x.place(spot.x)}" cy="{upward(y, spot.y)}" r="{spot.radius:.2f}"'
        parts.append(Markup(f'<circle {at} class="dot {spot.kind}">{tag("title", spot.title)}</circle>'))
        if spot.name:
            left = spot.x > (x.low + x.high) / 2
            shift = {"dx": f"{-spot.radius - 5:.1f}" if left else f"{spot.radius + 5:.1f}", "dy": ".35em"}
            where = {"x": x.place(spot.x), "y": upward(y, spot.y), "text_anchor": "end" if left else "start"}
            parts.append(tag("text", spot.name, **where, **shift, class_="tag"))
    parts.append(tag("text", names[0], x="100%", y="100%", dy="2.7em", text_anchor="end"))
    parts.append(tag("text", names[1], x="0", y="0", dx="-2.6em", dy="-.7em", text_anchor="start"))
    drawn = tag("svg", tag("title", words), *parts, class_="scatter", role="img", aria_label=words)
    return tag("div", drawn, class_="scatter-frame square" if diagonal else "scatter-frame")


def upward(axis: Axis, value: float) -> str:
    share = (value - axis.low) / (axis.high - axis.low)
    return f"{100 - 100 * min(1.0, max(0.0, share)):.3f}%"


# === Shaded tables ===


def shade(share: float) -> str:
    """The class of a share in [0, 1]: six steps from nearly white to half strong, all of them readable under text."""
    return f"s{min(SHADES - 1, int(share * SHADES))}"


def heat(corner: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[Markup]]], label: str) -> Markup:
    """A table of ready cells."""
    first = tag("th", corner, scope="col") if corner else tag("td")
    head = tag("tr", first, *[tag("th", name, scope="col") for name in columns])
    body = [tag("tr", tag("th", name, scope="row", class_="row-name"), *cells) for name, cells in rows]
    made = tag("table", tag("thead", head), tag("tbody", *body), class_="heat")
    return tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=label)


def heat_cell(share: float | None, text: str, small: str | None = None, mark: bool = False) -> Markup:
    if share is None:
        return tag("td", "\u00b7", class_="nothing")
    return tag("td", text, tag("small", small) if small else None, class_=shade(share) + (" hit" if mark else ""))


def figure(title: str, reading: object, *parts: object, anchor: str | None = None) -> Markup:
    """A picture with its title and how to read it."""
    return tag(
        "figure",
        tag("figcaption", title),
        tag("p", reading, class_="reading") if reading else None,
        joined(parts),
        id=anchor,
    )
