"""What a run would send, cost, take and be able to show, before anything is spent; and how far it has come.

Tokens are counted with tiktoken's o200k_base when that package and its vocabulary are on this machine (nothing is
downloaded), else estimated from the text's word pieces; either is a model's tokens only for models with that
tokenizer. The bound beside the estimate holds for every byte-level tokenizer: no token is shorter than one byte.
Pure but for the look-up of the tokenizer.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import agreement
import evidence
import foreign
import generate
import rows

# === Constants ===

# Pieces as byte-pair tokenizers cut them: letters, other scripts, up to three digits, breaks, signs, blanks.
PIECE = re.compile(r"[A-Za-z]+|[^\W\dA-Za-z_]+|\d{1,3}|\s*\n\s*|[^\w\s]+|_+| +")
WHOLE_WORD = 7  # letters of an English word that is nearly always one token
LETTER_BEYOND = 0.11  # further tokens for each letter beyond that
OTHER_ALPHABET = 0.32  # tokens a letter of an alphabet other than plain Latin
IDEOGRAPH = 0.72  # tokens a character of scripts from U+2E80 on
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"  # tiktoken's cache file name of o200k_base
OVERHEAD = 12  # tokens that chat templates add to a request, about
WRITES = ("manifest.json", "journal.jsonl (until complete)", "raw.jsonl.gz", "inputs/")
FEW = 10  # pairs below which a plan says nothing of precision
ASSUMED_AGREEMENT = 0.8  # share of pairs a judge is right on, where eval.json plans with no other
WANTED_AGREEMENT, WANTED_KAPPA = 0.05, 0.1  # half widths that a plan says the number of pairs for
SHOW_EVERY_S = (0.5, 30.0)  # a terminal, anything else
FIRST_SHOWN_S = 2.0  # when the first line comes where it is not rewritten


# === Tokens ===


@functools.lru_cache(maxsize=1 << 16)
def piece_tokens(piece: str) -> float:
    """The expected tokens of one piece of text."""
    first = piece[0]
    if first.isspace():
        return 1.0 if "\n" in piece or len(piece) > 1 else 0.0
    if first.isdigit():
        return 1.0
    if not first.isalpha():
        return float((len(piece) + 1) // 2)
    if first.isascii():
        return 1.0 + max(0, len(piece) - WHOLE_WORD) * LETTER_BEYOND
    return len(piece) * (IDEOGRAPH if ord(first) >= 0x2E80 else OTHER_ALPHABET)


def estimate_tokens(text: str) -> int:
    """About how many o200k tokens a text has; tests/bench_plan.py measures the error."""
    return math.ceil(math.fsum(map(piece_tokens, PIECE.findall(text))))


def cached_tokenizer(environment: dict[str, str]) -> Callable[[str], int] | None:
    """tiktoken's o200k_base, only when package and vocabulary are here already: planning never downloads."""
    places = [environment.get("TIKTOKEN_CACHE_DIR"), environment.get("DATA_GYM_CACHE_DIR")]
    if not any(place and os.path.exists(os.path.join(place, VOCABULARY)) for place in places):
        return None
    try:
        import tiktoken  # type: ignore[import-not-found,unused-ignore]

        encoding = tiktoken.get_encoding("o200k_base")
    except Exception:  # a broken optional package must not stop a plan
        return None
    return lambda text: len(encoding.encode(text, disallowed_special=()))


# === Estimate ===


def measured_usage(folder: str) -> dict[str, tuple[float, float]]:
    """arm -> mean (input, output) tokens a request in an earlier run, for --calibrate."""
    sums: dict[str, list[float]] = {}
    path = os.path.join(folder, "raw.jsonl.gz")
    manifest = foreign.checked_manifest(folder)
    most = manifest["items"] * len(manifest["arms"]) * manifest["repeats"]
    for number, row in enumerate(evidence.at_most(evidence.read_rows(path), most, path), 1):
        problems = rows.row_problems(row, rows.orders_of(row))
        if problems:
            raise evidence.EvidenceError(f"{path}:{number}: {problems[0]}")
        for kept in row["replies"].values():
            usage = kept.get("usage") or {}
            if usage.get("input") is not None and usage.get("output") is not None:
                total = sums.setdefault(row["arm"], [0.0, 0.0, 0.0])
                total[0] += usage["input"]
                total[1] += usage["output"]
                total[2] += 1
    return {arm: (total[0] / total[2], total[1] / total[2]) for arm, total in sums.items()}


def request_sizes(evaluation: Any, arm: Any, items: Any, count: Callable[[str], int]) -> tuple[int, int, int]:
    """Requests, tokens and bytes of one pass of an arm over the items."""
    config = arm.overlay(evaluation.config)
    requests = tokens = size = 0
    for item in items:
        for payload in evaluation.recipe.plan_requests(item, config):
            text = json.dumps(payload, ensure_ascii=False)
            requests, tokens, size = requests + 1, tokens + count(text) + OVERHEAD, size + len(evidence.encode(text))
    return requests, tokens, size


def arm_estimate(
    evaluation: Any, arm: Any, items: Any, options: Any, count: Callable[[str], int], measured: dict[str, Any]
) -> dict[str, Any]:
    """What one arm would send and cost."""
    repeats = options.repeats or evaluation.config["repeats"]
    requests, tokens, size = request_sizes(evaluation, arm, items, count)
    output = evaluation.config.get("planning", {}).get("output_tokens", evaluation.config["max_tokens"])
    basis = "assumption of eval.json"
    if arm.name in measured:
        tokens, output = round(measured[arm.name][0] * requests), measured[arm.name][1]
        basis = "mean of the run given with --calibrate"
    requests, tokens, size = requests * repeats, tokens * repeats, size * repeats
    rpm = options.rpm or arm.settings.get("rpm")
    free = arm.control is not None
    found = {
        "requests": requests,
        "input_tokens": 0 if free else tokens,
        "input_tokens_at_most": 0 if free else size,
        "output_tokens": 0 if free else round(output * requests),
        "output_tokens_at_most": 0 if free else evaluation.config["max_tokens"] * requests,
        "output_basis": "a control asks no model" if free else basis,
        "asks": None if free else asked_text(arm.settings),
        "rpm": None if free else rpm,
        "minutes": None if free or rpm is None else round(requests / rpm, 1),
    }
    return {**found, **arm_cost(arm, evaluation.config, found)}


def dollars(input_tokens: float, output_tokens: float, price: dict[str, float]) -> float:
    return float(round((input_tokens * price["input"] + output_tokens * price["output"]) / 1e6, 4))


def arm_cost(arm: Any, config: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Cost at the frozen prices, and the share of a weekly allowance where the arm states one."""
    price = arm.settings.get("price_usd_per_mtok")
    weekly = arm.settings.get("weekly_tokens")
    total = found["input_tokens"] + found["output_tokens"]
    names = ("cost_usd", "cost_usd_at_most")
    cost: dict[str, Any] = {**dict.fromkeys(names), "batch_cost_usd": None, "weekly_share": None}
    if arm.control:
        return {**cost, **dict.fromkeys(names, 0.0)}
    if price is not None:
        for name, end in zip(names, ("", "_at_most")):
            cost[name] = dollars(found["input_tokens" + end], found["output_tokens" + end], price)
    batch_price = rows.price_for(arm.settings, config, {"via": rows.BATCH})
    if batch_price is not None:
        cost["batch_cost_usd"] = dollars(found["input_tokens"], found["output_tokens"], batch_price)
    if weekly:
        cost["weekly_share"] = round(total / weekly, 4)
    return cost


class Gold(NamedTuple):
    """The pairs that have gold: how many, in how many questions, how often two of their labels are one by chance."""

    n: int
    questions: int
    chance: float


def gold_of(items: Any) -> Gold:
    """One pass over the pairs; without any that has gold, chance is 1."""
    labels: Counter[str] = Counter()
    questions = set()
    for item in items:
        if item.get("gold") is not None:
            labels[item["gold"]] += 1
            questions.add(item.get("cluster") or (item["item_id"],))
    n = sum(labels.values())
    return Gold(n, len(questions), sum(count * count for count in labels.values()) / (n * n) if n else 1.0)


def detectable(evaluation: Any, gold: Gold) -> dict[str, Any]:
    """The smallest difference between two judges that this many pairs can show, for agreement and for kappa."""
    planning = evaluation.config.get("planning", {})
    share, power = planning.get("discordant_share", 0.15), planning.get("power", 0.8)
    difference = agreement.detectable_difference(gold.n, share, power=power) if gold.n else None
    kappa = difference / (1 - gold.chance) if difference is not None and gold.chance < 1 else None
    return {
        "pairs_with_gold": gold.n,
        "discordant_share": share,
        "power": power,
        "agreement": None if difference is None else round(difference, 4),
        "kappa": None if kappa is None else round(kappa, 4),
    }


def precision(evaluation: Any, gold: Gold) -> dict[str, Any] | None:
    """How well one judge will be known from these pairs, and how many it takes; None without pairs that have gold.

    By assumption the judge is right on the planned share of pairs and uses the labels as often as gold does.
    """
    right = evaluation.config.get("planning", {}).get("agreement", ASSUMED_AGREEMENT)
    n, questions, chance = gold
    if n < FEW:
        return None
    kappa = None
    if chance < 1:
        kappa = {
            "half_width": round(agreement.half_width_kappa(n, right, chance), 4),
            "wanted": WANTED_KAPPA,
            "pairs": agreement.sample_size_kappa(right, chance, WANTED_KAPPA),
        }
    return {
        "pairs_with_gold": n,
        "questions": questions,
        "assumed_agreement": right,
        "agreement": {
            "half_width": round(agreement.half_width_rate(n, right), 4),
            "wanted": WANTED_AGREEMENT,
            "pairs": agreement.sample_size_rate(right, WANTED_AGREEMENT),
        },
        "kappa": kappa,
    }


def estimate(evaluation: Any, arms: list[Any], items: Any, options: Any) -> dict[str, Any]:
    """The whole plan as data; the same for equal inputs, wherever and whenever it is made."""
    counter = cached_tokenizer(dict(os.environ))
    measured = measured_usage(options.calibrate) if options.calibrate else {}
    per_arm = {
        arm.name: arm_estimate(evaluation, arm, items, options, counter or estimate_tokens, measured) for arm in arms
    }
    gold = gold_of(items) if evaluation.is_pairwise else None
    costs = [found["cost_usd_at_most"] for found in per_arm.values()]
    return {
        "slug": evaluation.slug,
        "split": options.split,
        "items": len(items),
        "repeats": options.repeats or evaluation.config["repeats"],
        "orders": 2,
        "arms": per_arm,
        "requests": sum(found["requests"] for found in per_arm.values()),
        "max_usd": options.max_usd,
        "cost_usd_at_most": None if None in costs else sum(costs),
        "tokenizer": "tiktoken o200k_base" if counter else "estimate from word pieces (no tokenizer needed)",
        "precision": precision(evaluation, gold) if gold is not None else None,
        "detectable_difference": detectable(evaluation, gold) if gold is not None else None,
        "writes": [os.path.join(options.out, evaluation.slug, "<UTC start>", name) for name in WRITES],
    }


# === Show ===


def number(value: float | None, digits: int = 0) -> str:
    return "unknown" if value is None else f"{value:,.{digits}f}"


def asked_text(settings: dict[str, Any]) -> str:
    """Who would be asked where, and whether the key for it is there; never the key."""
    name = settings.get("key_env")
    key = f"key in {name} ({'set' if os.environ.get(name) else 'not set'})" if name else "no key"
    return f"{settings.get('model')} at {settings.get('endpoint')}, {key}"


def arm_lines(name: str, found: dict[str, Any]) -> list[str]:
    """The plan of one arm for people."""
    lines = [
        f"{name}",
        f"  requests        {number(found['requests'])}",
        f"  input tokens    {number(found['input_tokens'])} (at most {number(found['input_tokens_at_most'])})",
        f"  output tokens   {number(found['output_tokens'])} (at most {number(found['output_tokens_at_most'])};"
        f" {found['output_basis']})",
        f"  cost, US $      {number(found['cost_usd'], 2)} (at most {number(found['cost_usd_at_most'], 2)})",
        f"  minutes         {number(found['minutes'], 1)}"
        + (f" at {found['rpm']:g} requests a minute" if found["rpm"] else "")
        + (" (tell the pace with --rpm)" if found["asks"] and not found["rpm"] else ""),
    ]
    if found["cost_usd"] is None:
        lines.append(f"{'':18}(tell prices with --price IN,CACHED,OUT, or as price_usd_per_mtok in eval.json)")
    if found["asks"]:
        lines.append(f"  asks            {found['asks']}")
    if found["batch_cost_usd"] is not None:
        lines.append(f"  as a batch      {number(found['batch_cost_usd'], 2)} US $")
    if found["weekly_share"] is not None:
        lines.append(f"  weekly share    {found['weekly_share']:.1%} of the arm's weekly tokens")
    return lines


def limit_lines(found: dict[str, Any]) -> list[str]:
    """Whether a limit on money would be reached."""
    limit, most = found["max_usd"], found["cost_usd_at_most"]
    if limit is None:
        return []
    if most is None:
        return ["", f"--max-usd {limit:g} needs a price for every judge that is asked"]
    reached = "may be reached before the end; the run then stops, resumable" if most > limit else "cannot be reached"
    return ["", f"--max-usd {limit:g} {reached} (at most {most:,.2f} in all)"]


def precision_lines(found: dict[str, Any] | None) -> list[str]:
    """How well one judge will be known, and what a closer look takes."""
    if found is None:
        return []
    n, questions = found["pairs_with_gold"], found["questions"]
    kinds = [(name, found[name]) for name in ("agreement", "kappa") if found[name] is not None]
    known = " and ".join(f"{name} to about +-{each['half_width']:.3f}" for name, each in kinds)
    wanted = ", ".join(f"{name} to +-{each['wanted']:g} takes about {each['pairs']:,} pairs" for name, each in kinds)
    lines = [
        f"{n} pairs tell one judge's {known}",
        f"  (95%, if it is right on {found['assumed_agreement']:.0%} of them; {wanted})",
    ]
    if questions < n:
        lines.append(f"  (less well where pairs of one question go together: they are {questions} questions)")
    return lines


def detectable_lines(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    if found["agreement"] is None:
        n, share = found["pairs_with_gold"], found["discordant_share"]
        enough = agreement.sample_size_paired(share, share, power=found["power"])
        some = f"; about {enough} pairs can" if enough is not None and enough > n else ""
        return [f"{n} pairs cannot show a difference between two judges who differ on {share:.0%} of them{some}"]
    return [
        f"this set can detect differences between two judges of at least {found['agreement']:.3f} in agreement"
        + (f" or {found['kappa']:.3f} in kappa" if found["kappa"] is not None else ""),
        f"  ({found['pairs_with_gold']} pairs with gold, power {found['power']}, "
        f"if the judges differ in being right on {found['discordant_share']:.0%} of the pairs)",
    ]


def render(found: dict[str, Any], form: str) -> str:
    """The plan as text or as JSON."""
    if form == "json":
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    head = (
        f"{found['slug']}: {found['items']} pairs of split {found['split']} x {found['orders']} orders x "
        f"{found['repeats']} repeats; {found['requests']:,} requests in all\n"
        f"tokens: {found['tokenizer']}"
    )
    lines = [head]
    for name, arm in found["arms"].items():
        lines += ["", *arm_lines(name, arm)]
    lines += limit_lines(found)
    lines += ["", *precision_lines(found["precision"]), *detectable_lines(found["detectable_difference"])]
    lines.append("would write:")
    lines += [f"  {path}" for path in found["writes"]]
    lines += [f"could not become a receipt: {text}" for text in found.get("no_receipt", [])]
    return "\n".join([*lines, "nothing was sent, nothing was written"]) + "\n"


# === Progress ===


def counts_text(runs: dict[str, Any]) -> str:
    """'320 ok, 2 invalid, 1 failed, 77 missing' over all arms."""
    sums = [sum(run.progress.counts[state] for run in runs.values()) for state in range(4)]
    missing, ok, invalid, failed = sums
    return f"{ok} ok, {invalid} invalid, {failed} failed, {missing} missing"


def rate_text(rate: float) -> str:
    """'2.5/s', '7.1/min' or '0.40/min': replies per second with digits that say something at any speed."""
    if rate >= 1:
        return f"{rate:.1f}/s"
    return f"{rate * 60:.1f}/min" if rate * 60 >= 1 else f"{rate * 60:.2f}/min"


class ProgressLine:
    """Progress on stderr: one line that is rewritten on a terminal; elsewhere one soon, then one every half minute."""

    def __init__(
        self, stream: Any, clock: Callable[[], float], quiet: bool, started: float | None = None, before: int = 0
    ) -> None:
        """started: when asking began, on the clock; before: replies that were there by then, which are no speed."""
        self.stream, self.clock, self.quiet, self.before = stream, clock, quiet, before
        self.terminal = bool(stream.isatty())
        self.started = clock() if started is None else started
        self.due = self.started + (SHOW_EVERY_S[0] if self.terminal else FIRST_SHOWN_S)

    @staticmethod
    def done(runs: dict[str, Any]) -> int:
        """Replies of any state."""
        return sum(len(run.state) - run.progress.counts[generate.MISSING] for run in runs.values())

    def text(self, runs: dict[str, Any]) -> str:
        """Done of total, rate, counts, retries, cost and the time left."""
        total = sum(len(run.state) for run in runs.values())
        done = self.done(runs)
        seconds = max(1e-9, self.clock() - self.started)
        rate = (done - self.before) / seconds
        left = f", {format_seconds((total - done) / rate)} left" if rate > 0 and done < total else ""
        cost = sum(run.progress.cost for run in runs.values())
        unpriced = any(run.progress.unpriced for run in runs.values())
        retries = sum(run.progress.retries for run in runs.values())
        price = f", ${cost:.4f}{' + unpriced' if unpriced else ''}" if cost else ""
        billed = sum(run.progress.maybe_billed for run in runs.values())
        twice = f" ({billed} may have been billed twice)" if billed else ""
        return f"{done}/{total} replies, {rate_text(rate)}, {counts_text(runs)}, {retries} retries{twice}{price}{left}"

    def update(self, runs: dict[str, Any], force: bool = False) -> None:
        now = self.clock()
        if self.quiet or (not force and now < self.due):
            return
        self.due = now + SHOW_EVERY_S[0 if self.terminal else 1]
        line = self.text(runs)
        self.stream.write(f"\r\x1b[K{line}" if self.terminal else line + "\n")
        self.stream.flush()

    def close(self, runs: dict[str, Any]) -> None:
        """The last state, and the end of a rewritten line."""
        self.update(runs, force=True)
        if self.terminal and not self.quiet:
            self.stream.write("\n")


def format_seconds(seconds: float) -> str:
    """'45s', '12m 05s' or '3h 20m'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
