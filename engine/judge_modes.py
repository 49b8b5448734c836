"""What `judge.py grade` and `judge.py compare` do, from parsed options to exit code.

Files are read and checked as a whole, then everything missing is asked for, then verdicts are read again from the kept
replies and the result is written and printed. A judge that fails on some items leaves them without a verdict, counted
apart; the same command asks for them again.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import evidence
import grading
import judge_tables
import judged
import judging
import messages
import results

# === Constants ===

VOICE = messages.Voice("judge")
PANEL = "panel"
MAX_LISTED = 20
AGAIN_HINT = "these replies are kept; to ask again, begin anew with --overwrite or choose another --out"


# === Settings ===


def request_config(options: Any) -> dict[str, Any]:
    """What of the flags decides each request."""
    return {
        "output_mode": options.output_mode,
        "strict": not options.no_strict,
        "score_range": options.score_range,
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "seed": options.seed,
        "reasoning_effort": options.reasoning_effort,
    }


def digest(path: str) -> str:
    return evidence.sha256(results.read_bytes(path))


def dated(summary: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    """A summary with the time its replies took and the day they were begun."""
    return {**summary, "seconds": manifest["seconds"], "date": manifest["started_at"][:10]}


# === Grade ===


def fifths(lengths: Sequence[int]) -> list[int]:
    """The fifth of the list that each length is in, 1 the shortest: what the control `longer` grades by."""
    shorter: dict[int, int] = {}
    for place, length in enumerate(sorted(lengths)):
        shorter.setdefault(length, place)
    return [1 + 5 * shorter[length] // len(lengths) for length in lengths]


def grade_work(items: list[dict[str, Any]]) -> judging.Work:
    """The answers to be graded."""
    places = fifths([len(item["answer"]) for item in items])
    keys = ("prompt", "rubric", "reference", "answer")
    return judging.Work(
        {"item_id": item["id"], **{key: item[key] for key in keys}, "length_fifth": place}
        for item, place in zip(items, places)
    )


def without_verdict(summary: dict[str, Any], any_usable: bool, asked: str) -> int:
    """Exit code 1, and why, when no reply at all held a verdict: then nothing was measured. asked: keys of a reply."""
    if any_usable:
        return 0
    codes = ", ".join(f"{code} {count}" for code, count in sorted((summary.get("codes") or {}).items()))
    text = f"no reply holds a usable verdict ({codes or 'no reply'}); a reply is an object with {asked}"
    VOICE.error(text, AGAIN_HINT)
    return 1


def main_grade(options: Any) -> int:
    return VOICE.guard(judging.HANDLED, grade, options)


def grade(options: Any) -> int:
    data = results.read_results(options.results, results.GRADE)
    VOICE.warn(unguided_warning(data["results"]))
    reading = sys.modules["recipe"]
    work = grade_work(data["results"])
    inputs = {"results": digest(options.results)}
    files = (options.results,)
    job = judging.Job(options.out, grading.Grade(reading), work, request_config(options), inputs, files)
    results.check_out(options.out, options.results)
    results.check_labbook(options.labbook, options.results, job.out, job.folder)
    arms = judging.judges_of(options.judge_model, options)
    code, done = judging.ask(job, arms, options, VOICE)
    found = {name: judging.verdicts(job, run) for name, run in done["runs"].items()}
    if not any(verdicts[item] for verdicts in found.values() for item in verdicts):
        return code or 3
    whole = graded_file(data, found, done["manifest"], options)
    finish(options, whole, judge_tables.grade_table)
    return code or without_verdict(whole["judge"], any(item["judge"] for item in whole["results"]), "score and why")


def unguided(items: list[dict[str, Any]]) -> int:
    """How many answers have neither rubric nor reference."""
    return sum(not (item["rubric"] or item["reference"]) for item in items)


def unguided_warning(items: list[dict[str, Any]]) -> list[str]:
    """One line when a judge is left to its own idea of a good answer."""
    count = unguided(items)
    if not count:
        return []
    return [f"{count} of {len(items)} answers have neither rubric nor reference: there the judge goes by its own taste"]


def graded_file(
    data: dict[str, Any], found: dict[str, judged.Verdicts], manifest: dict[str, Any], options: Any
) -> dict[str, Any]:
    """The judged file: as read, with the summary and each answer's verdict."""
    items = data["results"]
    summaries = {
        name: dated(judged.grade_summary(data["run"], items, verdicts, name, options), manifest)
        for name, verdicts in found.items()
    }
    if len(found) == 1:
        ((name, verdicts),) = found.items()
        rows = [graded_row(item, {name: verdicts[item["id"]]}, False) for item in items]
        return {**data, "judge": {**summaries[name], "unguided": unguided(items)}, "results": rows}
    rows = [graded_row(item, {name: verdicts[item["id"]] for name, verdicts in found.items()}, True) for item in items]
    panel = {**grade_panel(data, rows, summaries, manifest, options), "unguided": unguided(items)}
    return {**data, "judge": panel, "results": rows}


def graded_row(item: dict[str, Any], verdicts: dict[str, dict[str, Any]], panel: bool) -> dict[str, Any]:
    """One answer as read, plus `judge` ({"score", "why"} or null), for a panel `judges`, and why one is missing."""
    each = {name: judged.verdict_of_grade(replies.get("original")) for name, replies in verdicts.items()}
    row = {**item, "judge": next(iter(each.values()))}
    if panel:
        score = judged.panel_score([verdict["score"] for verdict in each.values() if verdict])
        row["judge"] = None if score is None else {"score": score, "why": panel_words(each)}
        row["judges"] = each
    problems = {name: problem_of(verdicts[name].get("original")) for name, verdict in each.items() if verdict is None}
    return {**row, "judge_problem": problems} if problems else row


def panel_words(each: dict[str, dict[str, Any] | None]) -> str:
    return "; ".join(f"{name}: {verdict['score'] if verdict else 'no verdict'}" for name, verdict in each.items())


def problem_of(found: dict[str, Any] | None) -> dict[str, Any]:
    """Why there is no verdict."""
    if found is None:
        return {"state": "missing", "code": None}
    return {"state": found["state"], "code": found["code"]}


def grade_panel(
    data: dict[str, Any],
    rows: list[dict[str, Any]],
    summaries: dict[str, dict[str, Any]],
    manifest: dict[str, Any],
    options: Any,
) -> dict[str, Any]:
    """The summary of a panel: its own scores like one judge's, each judge's, and how far they agree."""
    as_one = {
        row["id"]: {"original": {"state": "ok", "choice": str(row["judge"]["score"]), "reason": "", "code": None}}
        if row["judge"]
        else {"original": {"state": "invalid", "choice": "invalid", "reason": "", "code": "no_verdict"}}
        for row in rows
    }
    summary = dated(judged.grade_summary(data["run"], rows, as_one, PANEL, options), manifest)
    kin = list(summaries.values())
    summary["self_judged"] = any(each["self_judged"] for each in kin)
    summary["same_family"] = next((each["same_family"] for each in kin if each["same_family"]), None)
    ratings = [[verdict and verdict["score"] for verdict in row["judges"].values()] for row in rows]
    between = judged.panel_agreement(ratings, list(summaries), "ordinal")
    return {**summary, "judges": summaries, "panel_agreement": between}


# === Compare ===


def labels_of(runs: list[dict[str, Any]], paths: Sequence[str]) -> list[str]:
    """A name for each run: its model, with quantisation and a number where two would be called the same.

    A run that names no model is called by its file's name.
    """
    names = [run["model"] or os.path.basename(path) for run, path in zip(runs, paths)]
    if len(set(names)) < len(names):
        names = [f"{name} {run['quant'] or ''}".strip() for name, run in zip(names, runs)]
    counts = Counter(names)
    return [f"{name} #{place + 1}" if counts[name] > 1 else name for place, name in enumerate(names)]


def pairings(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def pair_work(files: list[dict[str, Any]], names: list[str]) -> tuple[judging.Work, list[tuple[int, int, str]]]:
    """(pairs to be judged, (i, j, id) of pairs whose answers are one text, which are not sent)."""
    work, identical = judging.Work(), []
    for i, j in pairings(len(files)):
        others = {item["id"]: item for item in files[j]["results"]}
        for item in files[i]["results"]:
            other = others.get(item["id"])
            if other is None:
                continue
            if item["answer"] == other["answer"]:
                identical.append((i, j, item["id"]))
                continue
            suffix = "" if len(files) == 2 else f" [{names[i]} / {names[j]}]"
            pair = {"item_id": item["id"] + suffix, "task": item["id"], "runs": (i, j)}
            answers = {"answer_a": item["answer"], "answer_b": other["answer"]}
            work.append({**pair, **shared_texts(item, other), **answers})
    return work, identical


def shared_texts(item: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What is shown beside two answers: as the first file has it, or the second where the first has nothing."""
    keys = ("category", "prompt", "rubric", "reference")
    return {key: item[key] if item[key] or not other[key] else other[key] for key in keys}


def only_in_one(files: list[dict[str, Any]], names: list[str]) -> dict[str, list[str]]:
    """name of a run -> ids that some other run does not have."""
    ids = [[item["id"] for item in data["results"]] for data in files]
    everywhere = set(ids[0]).intersection(*ids[1:])
    return {name: [one for one in own if one not in everywhere] for name, own in zip(names, ids)}


def task_problems(files: list[dict[str, Any]], paths: list[str]) -> list[str]:
    """One line for each task whose prompt differs between files: then its answers are no pair."""
    first = {item["id"]: item["prompt"] for item in files[0]["results"] if item["prompt"]}
    return [
        f"{path}: item {item['id']!r}: field 'prompt': differs from {paths[0]}'s; answers to two prompts are no pair"
        for data, path in zip(files[1:], paths[1:])
        for item in data["results"]
        if item["prompt"] and item["id"] in first and item["prompt"] != first[item["id"]]
    ]


def main_compare(options: Any) -> int:
    return VOICE.guard(judging.HANDLED, compare, options)


def compare(options: Any) -> int:
    paths = [options.results_a, options.results_b, *options.also]
    files = [results.read_results(path, results.COMPARE) for path in paths]
    results.refuse(task_problems(files, paths))
    names = labels_of([data["run"] for data in files], paths)
    work, identical = pair_work(files, names)
    alone = only_in_one(files, names)
    tell_alone(alone)
    if not work:
        why = "all shared answers are the same text" if identical else "the files share no id"
        raise results.FileProblem(f"{paths[0]} and {paths[1]}: nothing to compare: {why}")
    bare = sum(not pair["prompt"] for pair in work)
    VOICE.warn([f"{bare} of {len(work)} pairs have no prompt: there the judge sees the answers alone"] if bare else [])
    inputs = {f"results-{place}": digest(path) for place, path in enumerate(paths)}
    reading, config = grading.Compare(sys.modules["recipe"]), request_config(options)
    job = judging.Job(options.out, reading, work, config, inputs, tuple(paths))
    results.check_out(options.out, *paths)
    results.check_labbook(options.labbook, *paths, job.out, job.folder)
    arms = judging.judges_of(options.judge_model, options)
    code, done = judging.ask(job, arms, options, VOICE)
    found = {name: judging.verdicts(job, run) for name, run in done["runs"].items()}
    if not any(verdicts[item] for verdicts in found.values() for item in verdicts):
        return code or 3
    whole = compared_file(files, names, work, identical, found, done["manifest"], options)
    finish(options, {**whole, "only_in": alone}, judge_tables.compare_table)
    picked = any(pair["decision"] in ("A", "B", "equal") for pair in whole["pairs"])
    return code or without_verdict(whole["judge"], picked, "winner (first, second or tie) and why")


def tell_alone(alone: dict[str, list[str]]) -> None:
    """Name the ids that are not in every file."""
    for name, ids in alone.items():
        if ids:
            more = f" … and {len(ids) - MAX_LISTED} more" if len(ids) > MAX_LISTED else ""
            VOICE.warn([f"only in {name}, so not compared: {', '.join(ids[:MAX_LISTED])}{more}"])


def compared_file(
    files: list[dict[str, Any]],
    names: list[str],
    work: judging.Work,
    identical: list[tuple[int, int, str]],
    found: dict[str, judged.Verdicts],
    manifest: dict[str, Any],
    options: Any,
) -> dict[str, Any]:
    """Every pair with its verdicts and reasons, and the summary of each judge and pairing."""
    runs = [data["run"] for data in files]
    rows = [compared_row(pair, found) for pair in work]
    per_pairing = []
    for i, j in pairings(len(files)):
        pairs = [pair for pair in work if pair["runs"] == (i, j)]
        same = sum((i, j) == (a, b) for a, b, _ in identical)
        summaries = {
            name: dated(judged.compare_summary(runs[i], runs[j], pairs, verdicts, name, same, options), manifest)
            for name, verdicts in found.items()
        }
        per_pairing.append({"a": names[i], "b": names[j], "judges": summaries})
    whole: dict[str, Any] = {"runs": dict(zip(names, runs)), "judge": lead_summary(per_pairing, rows, work, found)}
    if len(files) > 2:
        whole["pairings"] = per_pairing
        whole["strengths"] = all_strengths(names, work, identical, found, options)
    return {**whole, "pairs": rows, "identical": [{"id": one, "a": names[i], "b": names[j]} for i, j, one in identical]}


def lead_summary(
    per_pairing: list[dict[str, Any]], rows: list[dict[str, Any]], work: judging.Work, found: dict[str, judged.Verdicts]
) -> dict[str, Any]:
    """The summary of the first pairing: the one judge's, or the panel's with each judge's inside."""
    summaries = per_pairing[0]["judges"]
    if len(summaries) == 1:
        return dict(next(iter(summaries.values())))
    first = next(iter(summaries.values()))
    mine = [row for row, pair in zip(rows, work) if pair["runs"] == (0, 1)]
    counts = Counter(row["decision"] for row in mine)
    ratings = [[usable(each["decision"]) for each in row["judges"].values()] for row in mine]
    decided = counts["A"] + counts["B"] + counts["equal"]
    return {
        **{key: first[key] for key in ("lab", "mode", "a", "b")},
        "judge_model": PANEL,
        "compared": decided,
        "wins_a": counts["A"],
        "wins_b": counts["B"],
        "ties": counts["equal"],
        "judge_failures": len(mine) - decided,
        "win_rate": {
            "value": judged.rounded((2 * counts["A"] + counts["equal"]) / (2 * decided), 4) if decided else None
        },
        "judges": summaries,
        "panel_agreement": judged.panel_agreement(ratings, list(summaries), "nominal"),
        **{key: first[key] for key in ("seconds", "date")},
    }


def usable(decision: str | None) -> str | None:
    return None if decision == "invalid" else decision


def compared_row(pair: dict[str, Any], found: dict[str, judged.Verdicts]) -> dict[str, Any]:
    """One pair with the decision in its own A and B, and what each judge said in each order."""
    keys = ("task", "category", "prompt", "rubric", "reference", "answer_a", "answer_b")
    each = {name: judge_row(verdicts[pair["item_id"]]) for name, verdicts in found.items()}
    row = {"id": pair["item_id"], **{key: pair[key] for key in keys}}
    if len(each) == 1:
        return {**row, **next(iter(each.values()))}
    return {**row, "decision": judged.panel_decision([one["decision"] for one in each.values()]), "judges": each}


def judge_row(replies: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """{"decision", "kind", "original", "swapped"} of one judge on one pair; choices are in shown positions."""
    kind = judged.pair_kind(replies)
    decision = {"flip": "equal", "failed": None, "missing": None}.get(kind, kind)
    orders = {
        order: {"choice": said["choice"], "why": said["reason"], "state": said["state"]} if said else None
        for order, said in ((order, replies.get(order)) for order in ("original", "swapped"))
    }
    return {"decision": decision, "kind": kind, **orders}


def all_strengths(
    names: list[str],
    work: judging.Work,
    identical: list[tuple[int, int, str]],
    found: dict[str, judged.Verdicts],
    options: Any,
) -> dict[str, Any]:
    """judge -> run -> Bradley-Terry strength over all pairings; same answers are a draw."""
    draws = [((names[i], names[j], "equal"), task) for i, j, task in identical]
    rating = {}
    for name, verdicts in found.items():
        games = [*draws]
        for pair in work:
            kind = judged.pair_kind(verdicts[pair["item_id"]])
            if kind in ("A", "B", "equal", "flip"):
                i, j = pair["runs"]
                games.append(((names[i], names[j], "equal" if kind == "flip" else kind), pair["task"]))
        rating[name] = judged.strengths([game for game, _ in games], [task for _, task in games], options)
    return rating


# === Result ===


def lines_of(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The labbook lines of a summary: each judge of a panel, then the panel."""
    inner = summary.get("judges")
    if not inner:
        return [summary]
    return [*inner.values(), {key: value for key, value in summary.items() if key != "judges"}]


def kin_warnings(summary: dict[str, Any]) -> list[str]:
    """One line for each judge that judges its own answers, or those of its family."""
    found = []
    for each in summary.get("judges", {summary["judge_model"]: summary}).values():
        sides = each["kinship"].items() if "kinship" in each else [("", each)]
        for side, kin in sides:
            whose = each[side]["model"] if side else each["model"]
            if kin["self_judged"]:
                found.append(f"{each['judge_model']} judges its own answers: expect it to like them")
            elif kin["same_family"]:
                found.append(f"{each['judge_model']} judges {whose}, a model of its own family ({kin['same_family']})")
    return found


def finish(options: Any, whole: dict[str, Any], table: Any) -> None:
    """Write the file and the labbook, warn, print."""
    judging.write_out(options.out, results.published(whole))
    VOICE.warn(kin_warnings(whole["judge"]))
    if options.labbook:
        for pairing in whole.get("pairings", [{}])[1:]:
            for summary in pairing["judges"].values():
                results.append_line(options.labbook, summary)
        for summary in lines_of(whole["judge"]):
            results.append_line(options.labbook, summary)
    if options.format == "json":
        shown = {key: value for key, value in whole.items() if key not in ("results", "pairs", "run")}
        print(json.dumps(shown if "pairings" in whole else whole["judge"], indent=2))
        return
    messages.show(table(whole))
    print(f"\nwritten: {options.out}")
