"""From a finished run to its receipt: a folder that anybody can verify offline, without a key and without our word.

A receipt holds the rows as kept and as scored, the summary, the pinned files as used, `receipt.json` (the published
schema 2, and beside it our own hashes, identities and figures) and `SHA256SUMS` for `sha256sum -c`. Every condition is
checked before anything is written, and all that fail are told together, each with what to do. Runs that share their
pins can be merged: arms judged at different times, or the shards of one run. Equal runs give equal receipts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import os
import shutil
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import audit
import commands
import evaluation as evaluations
import evidence
import fixtures
import foreign
import rescore
import trust

# === Constants ===

RECEIPT_FORMAT = "judge-receipt-v1"
SCHEMA = 2
SUMS = "SHA256SUMS"
# Figures and identities of summary.json that stand in receipt.json under a name of their own.
ELSEWHERE = ("hashes", "config_hash")


class NotAReceipt(evidence.EvidenceError):
    """A run that cannot become a receipt, or runs that cannot be merged; the text lists every reason."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


class Obstacle(NamedTuple):
    """One condition that is not met, and what to do about it."""

    text: str
    remedy: str


class Freeze(NamedTuple):
    """The commit that froze eval.json; both None with a reason when there is none to name."""

    commit: str | None
    committed_at: str | None
    reason: str | None


# === Freeze ===


def freeze_of(history: str | None, settings: bytes) -> Freeze:
    """The earliest commit that brought eval.json to these bytes.

    history: what `git log --raw --no-abbrev --format="commit %H %ct"` prints for the file; None without a repository.
    """
    if history is None:
        return Freeze(None, None, "no_repository")
    framed = b"blob %d\0" % len(settings) + settings
    blobs = {hashlib.sha1(framed, usedforsecurity=False).hexdigest(), hashlib.sha256(framed).hexdigest()}
    found, commit = Freeze(None, None, "not_committed"), ("", "0")
    for line in history.split("\n"):
        parts = line.split()
        if len(parts) == 3 and parts[0] == "commit":
            commit = (parts[1], parts[2])
        elif len(parts) > 4 and line.startswith(":") and parts[3] in blobs:
            found = Freeze(commit[0], evidence.utc_stamp(int(commit[1])), None)
    return found


# === Conditions ===


def selection_obstacles(
    split: str, limit: int | None, shard: str | None, repeats: int, frozen_repeats: int
) -> list[Obstacle]:
    """What of a run's selection keeps it from becoming a receipt; known before the first request."""
    found = []
    if split != "test":
        found.append(Obstacle(f"split: expected test, got {split}", "run it with --split test"))
    if limit is not None:
        found.append(Obstacle(f"limit: expected none, got {limit}", "run it without --limit"))
    if shard is not None:
        found.append(Obstacle(f"shard: expected none, got {shard}", "join all shards first: --merge RUN RUN …"))
    if repeats != frozen_repeats:
        text = f"repeats: expected {frozen_repeats} as frozen, got {repeats}"
        found.append(Obstacle(text, "run it without --repeats, or freeze another number of repeats"))
    return found


def planned_obstacles(options: Any, config: dict[str, Any], freeze: Freeze) -> list[str]:
    """Why a run with these options could not become a receipt, or only one without a freeze commit."""
    repeats = options.repeats or config["repeats"]
    found = selection_obstacles(options.split, options.limit, options.shard, repeats, config["repeats"])
    lines = [f"{obstacle.text} ({obstacle.remedy})" for obstacle in found]
    if freeze.reason == "not_committed":
        lines.append(
            "eval.json as it is now is in no commit (commit it first, so that the receipt can name its freeze)"
        )
    return lines


def whole_obstacles(manifest: dict[str, Any], config: dict[str, Any]) -> list[Obstacle]:
    """What a manifest says of a run that is not the whole test split, each pair judged in each frozen repeat."""
    found = selection_obstacles(
        manifest["split"], manifest["limit"], manifest["shard"], manifest["repeats"], config["repeats"]
    )
    if manifest.get("sparse"):
        found.append(
            Obstacle("rows: some pairs have no reply in some repeat", "publish a run in which none is missing")
        )
    return found


def run_obstacles(opened: foreign.Opened) -> list[Obstacle]:
    """What in manifest and files keeps a run from becoming a receipt."""
    found = whole_obstacles(opened.manifest, opened.config)
    for line in pin_problems(opened):
        found.append(Obstacle(line, "the run's own copies were changed; restore them"))
    return found


def pin_problems(opened: foreign.Opened) -> list[str]:
    """Whether `inputs/` holds the files the run was made with, each as the manifest and eval.json pin it."""
    manifest, config, folder = opened.manifest, opened.config, opened.folder
    named = {f"inputs/{name}": digest for name, digest in manifest["hashes"].items()}
    lines = foreign.hash_problems(folder, named, "manifest.json")
    for name in sorted(folder.files):
        if name.startswith("inputs/") and name not in named:
            lines.append(f"{foreign.shown(name)}: manifest.json does not name it")
    for name, pinned in pins_of(config).items():
        if manifest["hashes"].get(name) != pinned:
            got = manifest["hashes"].get(name)
            lines.append(f"inputs/{foreign.shown(name)}: eval.json pins {foreign.shown(pinned)}, the run names {got}")
    return lines


def pins_of(config: dict[str, Any]) -> dict[str, Any]:
    """Plain file name -> sha256 of every pin in an eval.json."""
    pins = {name: config.get(pin) for name, pin in foreign.PIN_NAMES.items()}
    engine, further = config.get("engine_sha256"), config.get("inputs_sha256")
    pins.update({f"engine/{name}": digest for name, digest in engine.items()} if isinstance(engine, dict) else {})
    pins.update(further if isinstance(further, dict) else {})
    if "tables_sha256" in config:
        pins["tables.py"] = config["tables_sha256"]
    return pins


def row_obstacles(found: audit.Audit, freeze: Freeze) -> list[Obstacle]:
    """What in the rows keeps a run from becoming a receipt."""
    remedies = {
        "rows": "the raw rows were changed or damaged; they cannot be published",
        "settings": "rows were made with other settings than the frozen ones; run again",
        "sums": "the raw rows were changed; they cannot be published",
        "replies": "what is recorded does not follow from the replies: see --rescore",
        "failed": "ask again for what failed: --resume",
        "ids": "the endpoint (or a cache before it) sent one reply several times; run without that cache",
        "models": "the endpoint served other models than the frozen pattern allows",
        "times": "the run's clock is not plausible",
    }
    lines = [Obstacle(text, remedies[check]) for check in remedies for text in found.findings.lines(check)]
    for name, served in found.models.items():
        if len(served) > 1:
            names = ", ".join(foreign.shown(model, 60) for model in served)
            lines.append(Obstacle(f"arm {name}: expected one served model, got {names}", "pin the model's version"))
    if freeze.committed_at is not None and found.first and found.first <= freeze.committed_at:
        text = f"first row of {found.first}: expected after the freeze of {freeze.committed_at} ({freeze.commit})"
        lines.append(Obstacle(text, "freeze and commit first, then run"))
    return lines


# === The published document ===


def arm_entry(name: str, opened: foreign.Opened, found: audit.Audit) -> dict[str, Any]:
    """One arm of schema 2, with the keys the published one has for its two arms, for every arm."""
    settings, config = opened.manifest["arm_settings"][name], opened.config
    served = next(iter(found.models[name]), None)
    entry: dict[str, Any] = {
        "model": settings.get("model") or (f"control: {settings['control']}" if settings.get("control") else served),
        "endpoint": settings.get("endpoint"),
        "max_tokens": config.get("max_tokens"),
        "runs": [sums.as_dict(repeat) for repeat, sums in enumerate(found.runs[name], 1)],
        "response_model": served,
    }
    if name != "pareto":
        entry["label"] = name
        entry["provider_served"] = settings.get("provider_name") or settings.get("provider")
        entry["reasoning_effort"] = config.get("reasoning_effort")
    return entry


def fixture_entry(opened: foreign.Opened) -> dict[str, Any]:
    """The fixture of schema 2; what eval.json says of its source cannot replace what is counted here."""
    splits = [item["split"] for item in opened.fixture]
    counted = {
        "path": "inputs/fixture.jsonl",
        "sha256": opened.manifest["hashes"]["fixture.jsonl"],
        "items": splits.count("test"),
        "dev_items": splits.count("dev"),
        "split": opened.manifest["split"],
    }
    source = opened.config.get("fixture_source")
    return {**counted, **{key: part for key, part in (source or {}).items() if key not in counted}}


def published(opened: foreign.Opened, found: audit.Audit, scored_sha: str, freeze: Freeze, pending: bool) -> Any:
    """`eval` of receipt.json: the published schema 2, key for key and in its order."""
    config, manifest = opened.config, opened.manifest
    copied = {key: config.get(key) for key in ("repeats", "seed", "unit", "aggregation", "headline", "secondary")}
    served = next(iter(found.models.get("pareto", {})), None)
    document = {
        "schema": SCHEMA,
        "runner": "run_eval.py",
        "pareto_release": served,
        "fixture": fixture_entry(opened),
        "prompt_sha256": evidence.sha256(evidence.encode(config["prompt"])),
        "recipe_sha256": manifest["hashes"]["recipe.py"],
        "eval_json_sha256": manifest["hashes"]["eval.json"],
        "freeze_sha": freeze.commit,
        **copied,
        "arms": {name: arm_entry(name, opened, found) for name in sorted(manifest["arms"])},
        "variants": config.get("variants", {}),
        "raw": {"path": "scored.jsonl.gz", "sha256": scored_sha},
    }
    return {**document, "baseline_status": "pending"} if pending else document


def document(
    opened: foreign.Opened,
    found: audit.Audit,
    result: dict[str, Any],
    files: dict[str, str],
    freeze: Freeze,
    **more: Any,
) -> dict[str, Any]:
    """receipt.json. files: name -> sha256 of every other file of the receipt; more: pending, rows_sha256."""
    manifest = opened.manifest
    stamps = [manifest["started_at"], manifest.get("ended_at"), found.latest]
    ours = {
        "format": RECEIPT_FORMAT,
        "slug": manifest["slug"],
        "title": manifest.get("title"),
        "tool_version": manifest["tool_version"],
        "python": manifest["python"],
        "started_at": stamps[0],
        "ended_at": stamps[1],
        "rows": found.rows,
        "raw_rows_sha256": more["raw_rows_sha256"],
        "scored_rows_sha256": more["scored_rows_sha256"],
        "config_hash": manifest["config_hash"],
        "outside_the_frozen_list": manifest["unlisted_arms"],
        "provenance": manifest["provenance"],
        "freeze": freeze._asdict(),
        "files": files,
        "figures": {key: part for key, part in result.items() if key not in ELSEWHERE},
    }
    date = (stamps[2] or stamps[1] or stamps[0])[:10]
    body = published(opened, found, files["scored.jsonl.gz"], freeze, more["pending"])
    return {"date": date, "result": "pass", "eval": body, "receipt": ours}


# === Make ===


def evaluation_of(opened: foreign.Opened) -> evaluations.Evaluation:
    """The evaluation as the run pinned it: enough to work out its config hashes."""
    return evaluations.Evaluation(
        folder=opened.folder.path,
        config=opened.config,
        items=opened.fixture,
        warnings=[],
        recipe=None,
        check=None,
        hashes=opened.manifest["hashes"],
        inputs={},
    )


def frozen_options() -> Any:
    """The options a receipt's summary is made with: none, so that everything is as frozen."""
    return SimpleNamespace(seed=None, bootstrap=None, level=None, bca=False, by=None)


def scored_rows(opened: foreign.Opened, found: audit.Audit) -> Iterator[dict[str, Any]]:
    """The rows of a run in which nothing was found, scored from their recorded choices."""
    for _, _, row in opened.folder.rows("raw.jsonl.gz"):
        yield found.scored_row(row)


def result_of(opened: foreign.Opened, found: audit.Audit, ours: Any, options: Any) -> dict[str, Any]:
    """The summary of an opened run, by the code here and the settings the run was made with."""
    tables = ours.tables if ours.slug == opened.manifest["slug"] else None
    evaluation = dataclasses.replace(evaluation_of(opened), tables=tables)
    return rescore.result_of(
        evaluation, opened.items, found.reader.tables, lambda: scored_rows(opened, found), opened.manifest, options
    )


def refuse_incomplete(opened: foreign.Opened, evaluation: Any) -> None:
    """Raises: NotAReceipt for a run without all its replies, which has no raw rows to look at yet."""
    if opened.manifest["status"] == "complete":
        return
    path = opened.folder.path
    ours = opened.manifest["slug"] == evaluation.slug
    resume = trust.resume_command(evaluation.folder if ours else commands.evaluation_of(path), path, opened.arms)
    raise NotAReceipt(f"{foreign.shown(path)}: the run is not complete", f"resume with: {resume}")


def examine(opened: foreign.Opened, evaluation: Any, freeze: Freeze) -> audit.Audit:
    """Check every condition. Raises: NotAReceipt that lists all that fail, each with its remedy."""
    refuse_incomplete(opened, evaluation)
    found = audit.Audit(opened, evaluation.recipe, evaluation.check.score).run(scored=False)
    obstacles = run_obstacles(opened) + row_obstacles(found, freeze)
    manifest = opened.manifest
    if manifest["slug"] != evaluation.slug:
        text = f"slug: expected {evaluation.slug}, got {foreign.shown(manifest['slug'])}"
        obstacles.append(Obstacle(text, "name the evaluation's folder before --receipt"))
    if manifest.get("raw_sha256") not in (None, opened.folder.sha256("raw.jsonl.gz")):
        obstacles.append(Obstacle("raw.jsonl.gz: sha256 is not the manifest's", "the raw file was changed"))
    if obstacles:
        met = "1 condition is" if len(obstacles) == 1 else f"{len(obstacles)} conditions are"
        lines = [f"cannot become a receipt: {met} not met"]
        raise NotAReceipt("\n".join(lines + [f"{found.text} -> {found.remedy}" for found in obstacles]))
    return found


def staging(target: str) -> str:
    """A folder beside the target to build in. Raises: NotAReceipt when the target is there already."""
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise NotAReceipt(f"{target}: is there already; nothing is overwritten: choose another --out")
    folder = f"{os.path.normpath(target)}.tmp.{os.getpid()}"
    try:
        os.makedirs(folder)
    except OSError as error:
        error.filename = target if error.filename == folder else error.filename
        raise
    return folder


def copy_run(opened: foreign.Opened, folder: str) -> None:
    """Manifest, raw rows and inputs of a run, byte for byte."""
    names = ["manifest.json", "raw.jsonl.gz", *(name for name in opened.folder.files if name.startswith("inputs/"))]
    for name in names:
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with opened.folder.open(name) as source, open(path, "wb") as copy:
            shutil.copyfileobj(source, copy)


def sums_text(files: dict[str, str]) -> bytes:
    """SHA256SUMS as `sha256sum -c` reads it."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items())).encode("utf-8")


def write_receipt(folder: str, evaluation: Any, freeze: Freeze, pending: bool) -> dict[str, Any]:
    """Turn a folder that holds manifest, raw rows and inputs into a receipt; returns receipt.json's object."""
    opened = foreign.open_run(folder)
    found = examine(opened, evaluation, freeze)
    scored = os.path.join(folder, "scored.jsonl.gz")
    digest = evidence.write_rows(scored, scored_rows(opened, found))
    result = result_of(opened, found, evaluation, frozen_options())
    evidence.write_atomic(os.path.join(folder, "summary.json"), evidence.pretty(result))
    listed = foreign.Folder(folder)
    files = {name: listed.sha256(name) for name in sorted(listed.files)}
    hashes = {"raw_rows_sha256": rows_sha256(listed), "scored_rows_sha256": digest}
    made = document(opened, found, result, files, freeze, pending=pending, **hashes)
    data = evidence.pretty(made)
    evidence.write_atomic(os.path.join(folder, "receipt.json"), data)
    evidence.write_atomic(os.path.join(folder, SUMS), sums_text({**files, "receipt.json": evidence.sha256(data)}))
    return made


def rows_sha256(folder: foreign.Folder, name: str = "raw.jsonl.gz") -> str:
    """The sha256 of a packed file's lines: equal rows have it in common, whatever packed them."""
    digest = hashlib.sha256()
    for _, line in folder.lines(name):
        digest.update(line)
    return digest.hexdigest()


def publish(sources: list[str], target: str, evaluation: Any, history: str | None, pending: bool) -> dict[str, Any]:
    """A receipt of one run, or of several merged, in a new folder. Raises: NotAReceipt, EvidenceError."""
    opened = [foreign.open_run(path) for path in sources]
    freeze = freeze_of(history, opened[0].folder.read("inputs/eval.json"))
    for each in opened:
        examine(each, evaluation, freeze)
    if len(opened) > 1:
        refuse_merge(opened)
    folder = staging(target)
    try:
        if len(opened) > 1:
            write_merged(opened, folder)
        else:
            copy_run(opened[0], folder)
        made = write_receipt(folder, evaluation, freeze, pending)
        if os.path.isdir(target):
            os.rmdir(target)  # empty, as staging() saw
        os.rename(folder, target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # made above by this very call
        raise
    return made


# === Merge ===


def refuse_merge(sources: list[foreign.Opened]) -> None:
    """Raises: NotAReceipt that lists why the runs cannot be joined into one."""
    lines = shared_problems(sources) + cover_problems(sources)
    if lines:
        raise NotAReceipt("\n".join(["these runs cannot be merged:", *lines]))


def shared_problems(sources: list[foreign.Opened]) -> list[str]:
    """What differs between runs that has to be the same in all of them."""
    first, lines = sources[0], []
    for each in sources[1:]:
        label = foreign.shown(each.folder.path)
        for field in ("slug", "split", "limit", "repeats"):
            if each.manifest[field] != first.manifest[field]:
                lines.append(f"{label}: {field}: expected {first.manifest[field]}, got {each.manifest[field]}")
        then, now = first.manifest["hashes"], each.manifest["hashes"]
        differing = sorted(name for name in {**then, **now} if then.get(name) != now.get(name))
        if differing:
            lines.append(f"{label}: pinned files differ: {', '.join(differing)} (run the other part on the same pins)")
        for name in each.manifest["arms"]:
            before = first.manifest["arm_settings"].get(name)
            if before is not None and keyless(before) != keyless(each.manifest["arm_settings"][name]):
                remedy = "give one of them a name of its own when it is run: --arm-label NAME"
                lines.append(f"{label}: arm {name}: is another judge under the same name ({remedy})")
    return lines


def keyless(settings: dict[str, Any]) -> dict[str, Any]:
    """An arm's settings without the name of the variable that held its key, which may differ between machines."""
    return {key: part for key, part in settings.items() if key != "key_env"}


def cover_problems(sources: list[foreign.Opened]) -> list[str]:
    """Whether every arm has every part exactly once, in runs that are complete and unchanged."""
    parts: dict[str, list[str | None]] = {}
    lines = []
    for each in sources:
        manifest, label = each.manifest, foreign.shown(each.folder.path)
        if manifest["status"] != "complete":
            lines.append(f"{label}: is not complete")
        elif manifest.get("raw_sha256") not in (None, each.folder.sha256("raw.jsonl.gz")):
            lines.append(f"{label}: raw.jsonl.gz is not the one that its manifest names")
        for name in manifest["arms"]:
            parts.setdefault(name, []).append(manifest["shard"])
    everywhere = {each.manifest["shard"] for each in sources}
    for name, shards in parts.items():
        wanted = whole_cover(shards) if len(everywhere) > 1 else [next(iter(everywhere))]
        if sorted(shards, key=str) != sorted(wanted, key=str):
            expected = ", ".join(str(part or "the whole") for part in wanted)
            got = ", ".join(str(part or "the whole") for part in shards)
            lines.append(f"arm {name}: expected each of {expected} once, got {got}")
    return lines


def whole_cover(shards: list[str | None]) -> list[str | None]:
    """The shards that make a whole together with the first of these."""
    if shards[0] is None:
        return [None]
    count = int(shards[0].partition("/")[2])
    return [f"{index}/{count}" for index in range(1, min(count, 10_000) + 1)]


def merged_manifest(sources: list[foreign.Opened], items: fixtures.Items) -> dict[str, Any]:
    """The manifest of the run that one process would have made of the same parts."""
    manifests = [each.manifest for each in sources]
    arms = list(dict.fromkeys(name for manifest in manifests for name in manifest["arms"]))
    joined: dict[str, Any] = {**manifests[0], "arms": arms, "shard": merged_shard(manifests), "items": len(items)}
    for field in ("arm_settings", "provenance"):
        joined[field] = {name: part for manifest in manifests for name, part in manifest[field].items()}
    batched = {name for manifest in manifests for name, kind in manifest["provenance"].items() if kind == "batch"}
    joined["provenance"].update(dict.fromkeys(sorted(batched), "batch"))  # as in a run that mixes both
    outside = {name for manifest in manifests for name in manifest["unlisted_arms"]}
    joined["unlisted_arms"] = [name for name in arms if name in outside]
    evaluation = evaluation_of(sources[0])
    judges = [evaluations.Arm(name, joined["arm_settings"][name]) for name in arms]
    joined["config_hash"] = {
        arm.name: evaluations.config_hash(evaluation, arm, joined["split"], items.ids) for arm in judges
    }
    joined["started_at"] = min(manifest["started_at"] for manifest in manifests)
    joined["ended_at"] = max(manifest.get("ended_at") or "" for manifest in manifests)
    joined["totals"] = merged_totals(manifests)
    told = ("arms", "shard", "started_at", "ended_at", "raw_sha256", "tool_version", "python")
    joined["merged_from"] = [{key: manifest.get(key) for key in told} for manifest in manifests]
    return joined


def merged_shard(manifests: list[dict[str, Any]]) -> str | None:
    """None for the whole; the common shard when all parts are of the same one."""
    shards = {manifest["shard"] for manifest in manifests}
    return shards.pop() if len(shards) == 1 else None


def merged_totals(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Totals of each arm, added up over the runs that hold it."""
    joined: dict[str, Any] = {}
    for manifest in manifests:
        for name, part in (manifest.get("totals") or {}).items():
            into = joined.setdefault(name, {})
            for key, count in part.items():
                if isinstance(count, dict):
                    served = into.setdefault(key, {})
                    for model, times in count.items():
                        served[model] = served.get(model, 0) + times
                else:
                    into[key] = round(into.get(key, 0) + count, 6)
    for part in joined.values():
        part["served_models"] = dict(sorted(part.get("served_models", {}).items()))
    return joined


def ranked_lines(
    each: foreign.Opened, places: dict[str, int], arms: dict[str, int]
) -> Iterator[tuple[tuple[int, int, int], bytes]]:
    """The raw rows of one run with their place in the merged one. Raises: NotAReceipt for a row of no place."""
    for number, line, row in each.folder.rows("raw.jsonl.gz"):
        repeat, item_id, arm = row.get("repeat"), row.get("item_id"), row.get("arm")
        known = isinstance(item_id, str) and item_id in places and arm in each.manifest["arms"]
        if not known or type(repeat) is not int:
            label = foreign.shown(each.folder.path)
            raise NotAReceipt(f"{label}: raw.jsonl.gz:{number}: is no row of this run")
        yield (repeat, places[str(item_id)], arms[str(arm)]), line


def write_merged(sources: list[foreign.Opened], folder: str) -> dict[str, Any]:
    """Write manifest, raw rows and inputs of the merged run; returns the manifest."""
    shard = merged_shard([each.manifest for each in sources])
    first = sources[0]
    items = fixtures.select(first.fixture, first.manifest["split"], first.manifest["limit"], shard)
    manifest = merged_manifest(sources, items)
    places = {item_id: place for place, item_id in enumerate(items.ids)}
    arms = {name: place for place, name in enumerate(manifest["arms"])}
    copy_run(first, folder)
    raw = os.path.join(folder, "raw.jsonl.gz")
    rows = heapq.merge(*(ranked_lines(each, places, arms) for each in sources))
    digest = evidence.write_lines(raw, (line for _, line in rows))
    manifest.update(raw_sha256=evidence.sha256_file(raw), raw_rows_sha256=digest)
    evidence.write_manifest(folder, manifest)
    return manifest


def merge(paths: list[str], out: str, now: float) -> str:
    """Join runs into one new run under `out`; returns its folder. Raises: NotAReceipt, EvidenceError."""
    sources = [foreign.open_run(path) for path in paths]
    refuse_merge(sources)
    folder = evidence.new_run(out, sources[0].manifest["slug"], now)
    write_merged(sources, folder)
    return folder
