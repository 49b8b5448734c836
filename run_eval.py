"""Measure an LLM judge before anyone believes it: both orders, repeats, controls, every reply kept, all offline after.

    python3 -I run_eval.py --demo                                  # no key, no network: three controls, a result
    python3 -I run_eval.py --plan --arms pareto                    # requests, tokens, cost, time; spends nothing
    python3 -I run_eval.py --generate --arms pareto                # ask the judge; resumable at any moment
    python3 -I run_eval.py --rescore runs/planted-faults/…         # parse and score the kept replies again
    python3 -I run_eval.py evals/mt-bench --generate --arms custom --base-url http://127.0.0.1:8080/v1 --model NAME

Needs beside it: recipe.py check.py agreement.py client.py eval.json fixture.jsonl and the folder engine/. An evaluation
folder given first (default: this one) brings its own eval.json, recipe.py, check.py and fixture.jsonl.
Every mode first compares each of these files with its pin in eval.json and refuses on one changed byte.
Writes only under --out (default ./runs), with --freeze eval.json, with --export-batch the files named. Deletes no run
but with --prune. Only --generate, --resume and --probe use the network, and only the chosen arms' endpoints; every
other mode refuses to open a connection. Batch services, clusters and --probe: see EXAMPLES.md.
Keys are read from the environment variable an arm names, or from --key-file, and appear nowhere.
Exit codes: 0 done and matching; 1 a check ran and something does not match, or a gate failed; 2 usage; 3 could not run
or not complete (resumable); 4 a gate is inconclusive; 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Any

# === Constants ===

PROGRAM = "run_eval"
RUNS = "runs"  # where runs are written unless --out says otherwise
# eval.json's pin for each file of the top level; the first three may live in an evaluation's own folder.
PINS = {
    "fixture.jsonl": "fixture_sha256",
    "recipe.py": "recipe_sha256",
    "check.py": "checker_sha256",
    "agreement.py": "agreement_sha256",
    "client.py": "client_sha256",
    "run_eval.py": "runner_sha256",
}
OWN_FILES = {"fixture.jsonl": "fixture", "recipe.py": "recipe", "check.py": "check"}


GATE_HELP = (
    "e.g. 'kappa>=0.6 @95', 'JUDGE:agreement>0.5', 'ONE vs OTHER:kappa>0 @95': an exit code of 0, 1 or 4. Metrics: "
    "kappa, agreement, ac1, position_consistency (or consistent), valid_output (or valid), length_excess, and by the "
    "rule that does not lead kappa_original, agreement_original (or …_both); of scored numbers mean and its like"
)
MODES = (
    *("demo", "plan", "generate", "resume", "rescore", "import_replies", "prune", "receipt", "merge", "verify"),
    *("diff", "probe", "export_batch", "import_batch", "freeze"),
)
# Rooms that a run's workers are in; with what these import, they are executed before a worker starts.
THREADED = ("client", "generate", "controls", "zstd")
# What --resume takes besides its run: the rest was settled when the run was started.
WITH_RESUME = (
    *("folder", "resume", "base_url", "key_env", "key_file", "price"),
    *("rpm", "concurrency", "by_item", "timeout", "quiet"),
    *("max_usd", "max_requests", "max_minutes"),
)
OF_CUSTOM = ("key_env", "price", "api_format", "output_mode", "strict", "omit", "rename", "extra_body")
NEW_RUN = ("demo", "plan", "generate", "export_batch")
PAIRS = (*NEW_RUN, "import_replies")
ASKING = ("generate", "resume")
RESULT = ("rescore", "demo")
# The modes in which a flag has an effect; a flag that is not named here is bound to another flag, or goes with all.
GOES_WITH = {
    **dict.fromkeys(("by", "bootstrap", "seed", "level", "bca", "disagreements", "report"), RESULT),
    "gate": (*RESULT, "verify"),
    "arms": (*NEW_RUN, "probe", "diff"),
    **dict.fromkeys(("split", "limit", "shard"), PAIRS),
    "out": (*PAIRS, "rescore", "prune", "receipt", "merge", "freeze"),  # with --rescore: where the run was made
    "repeats": NEW_RUN,
    "calibrate": ("plan",),
    "rpm": (*ASKING, "plan"),
    "concurrency": (*ASKING, "demo"),
    "by_item": (*ASKING, "export_batch"),
    "max_usd": (*ASKING, "plan"),
    "max_minutes": ASKING,
    "max_requests": (*ASKING, "export_batch"),
    **dict.fromkeys(("key_file", "timeout"), (*ASKING, "probe")),
    "format": (*RESULT, "plan", "verify", "diff", "probe"),
    **dict.fromkeys(("all", "force"), ("freeze",)),
    **dict.fromkeys(("pending", "merge_baseline"), ("receipt",)),
    **dict.fromkeys(("expect", "run_pinned_code"), ("verify",)),
}
OF_A_NEW_RUN = ("arms", "split", "limit", "shard", "repeats", "out")  # settled where --run names a run


class PinError(Exception):
    """A file is missing or differs from its pin; the text names every such file, expected and got."""


# === Loading ===


def load(path: str, name: str, data: bytes | None = None) -> Any:
    """Execute a file's bytes as module `name`: the very bytes that were hashed, never a cached or foreign module."""
    import types

    if data is None:
        with open(path, "rb") as stream:
            data = stream.read()
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(data, path, "exec"), module.__dict__)
    return module


def home() -> str:
    import os

    return os.path.dirname(os.path.abspath(__file__))


def read_bytes(path: str, hint: str | None = None) -> bytes:
    """A file's bytes. Raises: PinError when it cannot be read, or is a pipe that would be waited for."""
    import os

    if os.path.exists(path) and not os.path.isfile(path):
        raise PinError(f"{path}: expected a regular file")
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise PinError(f"{path}: cannot be read: {error.strerror}" + (f"\nhint: {hint}" if hint else "")) from None


def own_path(folder: str, config: dict[str, Any], plain: str) -> str:
    """Where an evaluation keeps one of its files: in its folder, or where `files` of eval.json says.

    Raises: PinError for a place outside the toolkit's own folder and the evaluation's.
    """
    import os

    files = config.get("files", {})
    key = OWN_FILES.get(plain, plain)
    given = files.get(key, plain) if isinstance(files, dict) else plain
    path = os.path.normpath(os.path.join(folder, str(given)))
    inside = [os.path.commonpath([os.path.realpath(path), os.path.realpath(top)]) for top in (folder, home())]
    if inside[0] != os.path.realpath(folder) and inside[1] != os.path.realpath(home()):
        raise PinError(
            f"{os.path.join(folder, 'eval.json')}: files.{key}: expected a path inside {home()}, got {given!r}"
        )
    return path


def engine_files() -> list[str]:
    import os

    return sorted(name for name in os.listdir(os.path.join(home(), "engine")) if name.endswith(".py"))


def is_unbuilt(folder: str, config: dict[str, Any], plain: str) -> bool:
    """Whether a file is one that the user builds (eval.json has a build_hint) and is not there yet."""
    import os

    built = "build_hint" in config and (plain == "fixture.jsonl" or plain in dict(config.get("inputs_sha256") or {}))
    return built and not os.path.exists(own_path(folder, config, plain))


def read_inputs(folder: str, config: dict[str, Any], skip_unbuilt: bool = False) -> dict[str, tuple[str, bytes, Any]]:
    """Every pinned file: plain name -> (path, bytes, pin in eval.json). Raises: PinError when one is missing.

    skip_unbuilt: leave out what the user has not built yet, as a freeze does, which keeps its pin.
    """
    import os

    hint = config.get("build_hint")
    found = {}
    for plain, pin in PINS.items():
        if skip_unbuilt and is_unbuilt(folder, config, plain):
            continue
        path = own_path(folder, config, plain) if plain in OWN_FILES else os.path.join(home(), plain)
        found[plain] = (path, read_bytes(path, hint if plain == "fixture.jsonl" else None), config.get(pin))
    engine = config.get("engine_sha256")
    for name in engine_files():
        path = os.path.join(home(), "engine", name)
        pinned = engine.get(name) if isinstance(engine, dict) else None
        found[f"engine/{name}"] = (path, read_bytes(path), pinned)
    for name, pinned in dict(config.get("inputs_sha256") or {}).items():
        if skip_unbuilt and is_unbuilt(folder, config, name):
            continue
        path = own_path(folder, config, name)
        found[name] = (path, read_bytes(path, hint), pinned)
    if "tables_sha256" in config:
        path = own_path(folder, config, "tables.py")
        found["tables.py"] = (path, read_bytes(path), config["tables_sha256"])
    return found


def read_config(folder: str) -> tuple[dict[str, Any], bytes]:
    """eval.json of a folder, and its bytes. Raises: PinError."""
    import json
    import os

    path = os.path.join(folder, "eval.json")
    data = read_bytes(path)
    try:
        config = json.loads(data, object_pairs_hook=no_duplicates, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise PinError(f"{path}: not JSON: {error}") from None
    if not isinstance(config, dict):
        raise PinError(f"{path}: expected a JSON object, got {type(config).__name__}")
    problems = name_problems(config)
    if problems:
        raise PinError("\n".join(f"{path}: {line}" for line in problems))
    return config, data


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of eval.json, which names each key once (evidence.py, not verified yet, does the same for rows)."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!a} stands twice")
        found[key] = value
    return found


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def name_problems(config: dict[str, Any]) -> list[str]:
    """Names of further inputs and of `files` under which a run could not keep a file beside the toolkit's own.

    A run writes each input under its name, so that a name must be that of a file and of none of ours.
    """
    import re

    own = {"eval.json", "engine", *PINS, *engine_files()}
    lines = []
    for field, reserved in (("inputs_sha256", {*own, "tables.py"}), ("files", own - {"tables.py"})):
        names = config.get(field)
        if names is None:
            continue
        if not isinstance(names, dict) or not all(isinstance(value, str) and value for value in names.values()):
            lines.append(f"field '{field}': expected an object of texts, got {ascii(names)[:60]}")
            continue
        for name in names:
            if not re.fullmatch(r"\w([\w .+@-]{0,98}\w)?", name) or ".." in name or name.lower() in reserved:
                lines.append(
                    f"field '{field}': expected plain file names, none of the toolkit's, got {ascii(name)[:60]}"
                )
        lines += [f"field '{field}.{name}': expected a path, got U+0000 in it" for name in names if "\0" in names[name]]
    return lines


def pin_problems(inputs: dict[str, tuple[str, bytes, Any]], config: dict[str, Any]) -> list[str]:
    """One line for each file that differs from its pin, and for each pinned file that is gone."""
    import hashlib

    lines = []
    for path, data, pinned in inputs.values():
        got = hashlib.sha256(data).hexdigest()
        if got != pinned:
            lines.append(f"{path}: sha256 expected {pinned}, got {got}")
    engine = config.get("engine_sha256")
    for name in sorted(set(engine if isinstance(engine, dict) else {}) - set(engine_files())):
        lines.append(f"engine/{name}: is pinned and missing")
    return lines


def own_command(folder: str, *words: str) -> str:
    """A command on an evaluation, to paste; it names the folder unless it is this one."""
    import os
    import shlex

    elsewhere = os.path.realpath(folder) != os.path.realpath(home())
    named = [os.path.relpath(folder)] if elsewhere else []
    script = os.path.relpath(os.path.join(home(), "run_eval.py"))
    return " ".join(["python3 -I", *map(shlex.quote, [script, *named, *words])])


def verified(folder: str, skip_unbuilt: bool = False) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The settings and the bytes of every input, all equal to their pins. Raises: PinError naming each that is not.

    skip_unbuilt: do without what the user has not built, as verifying somebody's receipt does: it brings its own.
    """
    config, data = read_config(folder)
    inputs = read_inputs(folder, config, skip_unbuilt)
    problems = pin_problems(inputs, config)
    if problems:
        problems.append(f"hint: undo the change, or pin it with: {own_command(folder, '--freeze')}")
        raise PinError("\n".join(problems))
    return config, {"eval.json": data, **{name: entry[1] for name, entry in inputs.items()}}


def load_later(path: str, name: str, data: bytes, lock: Any) -> None:
    """The same, executed when something of the module is first asked for: a command needs a part of the rooms.

    The bytes are those that were verified, whenever that is. lock: held while any room is executed. A mode with threads
    of its own loads its rooms at once instead, for a thread could meet a function whose neighbours are not there yet.
    """
    import types

    pending = [data]

    class Later(types.ModuleType):
        def __getattr__(self, wanted: str) -> Any:
            with lock:
                if pending:
                    exec(compile(pending.pop(), path, "exec"), self.__dict__)
                    self.__class__ = types.ModuleType  # type: ignore[assignment]  # from here on like any other
            if wanted in self.__dict__:
                return self.__dict__[wanted]
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")

    module = Later(name)
    module.__file__ = path
    sys.modules[name] = module


def load_rooms(inputs: dict[str, bytes], config: dict[str, Any], folder: str, at_once: tuple[str, ...]) -> Any:
    """Make modules of the verified bytes; returns the room with the modes.

    at_once: rooms that are executed here, what a file imports before the file itself; the others when first used.
    """
    import os
    import re
    import threading

    lock = threading.RLock()
    places = {"agreement": "agreement.py", "client": "client.py"}
    places.update({plain[len("engine/") : -3]: plain for plain in inputs if plain.startswith("engine/")})

    def load_room(name: str) -> None:
        plain = places.pop(name)
        for needed in re.findall(rb"^(?:import|from) (\w+)", inputs[plain], re.MULTILINE):
            if needed.decode() in places:
                load_room(needed.decode())
        load(os.path.join(home(), plain), name, inputs[plain])

    for name in at_once:
        if name in places:
            load_room(name)
    for name, plain in places.items():
        load_later(os.path.join(home(), plain), name, inputs[plain], lock)
    for name in ("recipe", "check"):
        load(own_path(folder, config, f"{name}.py"), name, inputs[f"{name}.py"])
    if "tables.py" in inputs:
        load(own_path(folder, config, "tables.py"), "evaluation_tables", inputs["tables.py"])
    return sys.modules["modes"]


# === Network lock ===

OFFLINE = ("socket.",)
CHILDREN = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile")


def lock_offline(children: bool = False, copies: bool = False) -> None:
    """From here on no connection or name look-up, and no child process but those of --run-pinned-code.

    The interpreter itself refuses, whoever asks. children: leave child processes possible. copies: leave forks of this
    very process possible, which stay under the same lock and can start no program either.
    """
    refused = OFFLINE if children else OFFLINE + CHILDREN

    def refuse(event: str, _: Any) -> None:
        if event.startswith(refused) and not (copies and event == "os.fork"):
            raise PermissionError(f"this mode is offline: {event} refused")

    sys.addaudithook(refuse)


# === Freeze ===


def refuse_broken(folder: str) -> None:
    """Refuse to pin what no run could use: settings, pairs, or code that is no Python.

    Raises: PinError naming file, line and field.
    """
    import os

    config, _ = read_config(folder)
    places = {name: os.path.join(home(), "engine", f"{name}.py") for name in ("evidence", "fixtures", "evaluation")}
    evidence, fixtures, evaluations = (load(path, name) for name, path in places.items())
    try:
        evaluations.check_config(config, os.path.join(folder, "eval.json"))
        for plain, (path, data, _) in read_inputs(folder, config, skip_unbuilt=True).items():
            if plain == "fixture.jsonl":
                fixtures.load_items(data, path)
            elif plain.endswith(".py") and not plain.startswith("engine/"):
                compile(data, path, "exec")
    except (evidence.EvidenceError, evaluations.SettingError) as error:
        raise PinError(f"{error}\nhint: nothing was pinned; mend it and freeze again") from None
    except (SyntaxError, ValueError) as error:
        raise PinError(f"{path}: no Python: {error}\nhint: nothing was pinned; mend it and freeze again") from None


def freeze_config(folder: str) -> list[str]:
    """Write today's hashes into eval.json, everything else untouched; returns what changed, one line each."""
    import hashlib
    import json
    import os
    import re

    config, data = read_config(folder)
    text = data.decode("utf-8")
    changes, engine = [], {}
    for plain, (_, content, pinned) in read_inputs(folder, config, skip_unbuilt=True).items():
        digest = hashlib.sha256(content).hexdigest()
        if plain.startswith("engine/"):
            engine[plain.removeprefix("engine/")] = digest
        else:
            pin = PINS.get(plain) or ("tables_sha256" if plain == "tables.py" else plain)
            text = re.sub(rf'("{re.escape(pin)}": *)"[^"]*"', rf'\g<1>"{digest}"', text, count=1)
        if digest != pinned:
            changes.append(f"{plain}: {pinned or 'not pinned'} -> {digest}")
    block = json.dumps(engine, indent=2).replace("\n", "\n  ")
    text = re.sub(r'"engine_sha256": *\{[^}]*\}', f'"engine_sha256": {block}', text, count=1)
    if pin_problems(read_inputs(folder, json.loads(text), skip_unbuilt=True), json.loads(text)):
        raise PinError(
            f"{os.path.join(folder, 'eval.json')}: a pin is missing; expected all of {', '.join(PINS.values())}"
        )
    if text.encode("utf-8") != data:
        temporary = os.path.join(folder, f"eval.json.tmp.{os.getpid()}")
        try:
            with open(temporary, "wb") as stream:
                stream.write(text.encode("utf-8"))
            os.replace(temporary, os.path.join(folder, "eval.json"))
        except OSError as error:
            raise PinError(
                f"{os.path.join(folder, 'eval.json')}: cannot be written: {error.strerror or error}"
            ) from None
    return changes


# === Command line ===


def build_parser() -> Any:
    import argparse

    parser = argparse.ArgumentParser(
        prog="run_eval.py",
        usage="run_eval.py [DIR] MODE [options]; --help lists them",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(git_history=None)  # read before the lock, by the modes that look for the freeze
    parser.add_argument("folder", nargs="?", metavar="DIR", help="evaluation folder (default: this script's)")
    mode = parser.add_argument_group("modes (one of them)").add_mutually_exclusive_group()
    mode.add_argument(
        "--demo", action="store_true", help="the controls over the fixture, with result and page; offline"
    )
    mode.add_argument("--plan", action="store_true", help="what a run would send, cost and write; spends nothing")
    mode.add_argument("--generate", action="store_true", help="ask the judges; writes a run")
    mode.add_argument("--resume", metavar="RUN", help="ask only what is missing or failed in a run")
    mode.add_argument("--rescore", metavar="RUN", help="parse and score a run's replies again; prints the result")
    mode.add_argument("--import-replies", metavar="FILE", help="recorded judge replies, JSONL, become a run; offline")
    mode.add_argument("--prune", type=int, metavar="KEEP", help="remove complete runs but the newest KEEP; asks first")
    mode.add_argument("--receipt", metavar="RUN", help="a complete run as a folder that anybody can verify (--out DIR)")
    mode.add_argument("--merge", metavar="RUN", nargs="+", help="join shards, or arms judged apart, into one run")
    mode.add_argument("--verify", metavar="PATH", help="check a receipt or run and recompute every figure; offline")
    mode.add_argument(
        "--diff", metavar=("A", "B"), nargs=2, help="two runs or receipts (RUN@2: one repeat) side by side"
    )
    mode.add_argument(
        "--probe", action="store_true", help="which output modes an endpoint honours; a request or two each"
    )
    mode.add_argument("--export-batch", metavar="FILE", help="a run's missing requests as batch files; offline")
    mode.add_argument(
        "--import-batch", metavar="RESULTS", nargs="+", help="a batch's results into the run of --run; offline"
    )
    mode.add_argument("--freeze", action="store_true", help="pin the inputs as they are now in eval.json")
    add_selection(parser.add_argument_group("what is judged"))
    add_custom_arm(parser.add_argument_group("a judge of your own (--arms custom)"))
    add_limits(parser.add_argument_group("pace and limits"))
    add_output(parser.add_argument_group("result"))
    add_evidence(parser.add_argument_group("receipts"))
    return parser


def add_selection(group: Any) -> None:
    group.add_argument("--arms", metavar="A,B", help="judges by name from eval.json, or custom")
    group.add_argument("--split", choices=("dev", "test"), help="(default: test)")
    group.add_argument("--limit", type=whole, metavar="N", help="the first N pairs of the split")
    group.add_argument("--repeats", type=to_thousand, metavar="N", help="full passes (default: as frozen)")
    group.add_argument("--calibrate", metavar="RUN", help="with --plan: token counts as measured in an earlier run")
    group.add_argument(
        "--arm-label", metavar="NAME", help="what the judge of --import-replies or --arms custom is called (custom)"
    )
    group.add_argument("--run", metavar="RUN", help="the run of --import-batch, or an existing one for --export-batch")
    group.add_argument("--batch-url", metavar="PATH", help="with --export-batch: what each line names as its url")
    group.add_argument("--shard", metavar="I/N", help="the I-th of N parts of the pairs")


def add_custom_arm(group: Any) -> None:
    group.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint, e.g. http://127.0.0.1:8080/v1")
    group.add_argument("--model", metavar="NAME")
    group.add_argument(
        "--key-env", metavar="VAR", help="environment variable that holds the key (none: no key is sent)"
    )
    group.add_argument("--api-format", choices=("openai", "anthropic", "responses"), help="(default: openai)")
    group.add_argument("--output-mode", choices=("tool", "required", "json_schema", "json_object", "text"))
    group.add_argument("--strict", action="store_true", help="ask for strict schema following in the tool")
    group.add_argument("--omit", metavar="FIELDS", help="request fields to leave out, e.g. reasoning_effort")
    group.add_argument("--rename", metavar="OLD=NEW", action="append", help="e.g. max_tokens=max_completion_tokens")
    group.add_argument("--extra-body", metavar="JSON", help="further request fields as a JSON object")
    group.add_argument("--price", metavar="IN,CACHED,OUT", help="US dollars per million tokens")


def add_limits(group: Any) -> None:
    group.add_argument("--rpm", type=positive, metavar="X", help="requests a minute and arm, start to start")
    group.add_argument("--concurrency", type=to_thousand, metavar="N", help="requests in flight per arm")
    group.add_argument(
        "--by-item", action="store_true", help="send an item's repeats one after the other (prompt caches)"
    )
    group.add_argument("--max-usd", type=positive, metavar="X", help="stop before the run has cost this (needs prices)")
    group.add_argument("--max-requests", type=whole, metavar="N", help="further tries included, of this command")
    group.add_argument("--max-minutes", type=positive, metavar="X", help="of this command")
    group.add_argument("--timeout", type=positive, metavar="S", help="seconds for one whole call")
    group.add_argument("--key-file", metavar="PATH", help="keys as NAME=KEY lines, or one key; mode 0600")
    group.add_argument("--quiet", action="store_true", help="no progress on stderr")


def add_output(group: Any) -> None:
    text = "where runs are written (default: ./runs); with --receipt: its folder (default: RUN/receipt)"
    group.add_argument("--out", metavar="DIR", default=RUNS, help=text)
    group.add_argument("--by", metavar="A,B", help="item fields to break the result down by, e.g. category,fault")
    group.add_argument(
        "--bootstrap", type=resamples, metavar="N", help="resamples of the intervals (default: as frozen)"
    )
    group.add_argument("--seed", type=int, metavar="N", help="of the resampling (default: as frozen)")
    group.add_argument("--level", type=percent, metavar="P", help="of the intervals, e.g. 90 (default: as frozen)")
    group.add_argument("--gate", metavar="G", action="append", help=GATE_HELP)
    group.add_argument("--bca", action="store_true", help="BCa intervals beside the percentile ones")
    group.add_argument("--disagreements", action="store_true", help="list the pairs whose decision is not gold")
    group.add_argument(
        "--report", action="store_true", help="write report.html into the run too (with --rescore; --demo always does)"
    )
    group.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    group.add_argument("--all", action="store_true", help="with --freeze: also every folder of evals/")
    group.add_argument(
        "--force", action="store_true", help="with --freeze: although a run on the old pins is incomplete"
    )


def add_evidence(group: Any) -> None:
    group.add_argument("--pending", action="store_true", help="with --receipt: say that another arm will follow")
    group.add_argument(
        "--merge-baseline", metavar="RUN", nargs="+", help="with --receipt: join these runs to it, on the same pins"
    )
    group.add_argument(
        "--expect",
        metavar="FIGURE=N",
        action="append",
        help="with --verify: a quoted figure, e.g. kappa=0.6154; of several judges JUDGE.kappa=0.6154",
    )
    group.add_argument(
        "--run-pinned-code", action="store_true", help="with --verify: also execute the receipt's own recipe and check"
    )


def in_range(text: str, kind: Any, good: Any, expected: str) -> Any:
    """A number, for argparse; what it is not is said in words."""
    import argparse

    try:
        value = kind(text)
        if good(value):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")


def whole(text: str) -> Any:
    return in_range(text, int, lambda value: value >= 1, "a whole number from 1")


def to_thousand(text: str) -> Any:
    return in_range(text, int, lambda value: 1 <= value <= 1000, "a whole number from 1 to 1000")


def resamples(text: str) -> Any:
    return in_range(text, int, lambda value: 1 <= value <= 1_000_000, "a whole number from 1 to 1000000")


def positive(text: str) -> Any:
    return in_range(text, float, lambda value: 0 < value < 1e12, "a number above 0")


def percent(text: str) -> Any:
    return in_range(text, float, lambda value: 50 <= value <= 99.9999, "a percentage from 50 to 99.9999, such as 95")


def given(parser: Any, options: Any) -> list[str]:
    """The names of the options that the command line sets."""
    return [name for name, value in vars(options).items() if value != parser.get_default(name)]


def flags(names: list[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)


def check_flags(parser: Any, options: Any) -> None:
    """Refuse a flag that would have no effect: whoever gives it expects one."""
    names = given(parser, options)
    idle = [name for name in names if name not in WITH_RESUME]
    if options.resume and idle:
        parser.error(f"{flags(idle)}: no effect with --resume, which asks what the run was started with")
    mode = next(name for name in MODES if name in names)
    for name in names:
        if mode not in GOES_WITH.get(name, MODES):
            parser.error(f"{flags([name])}: no effect with {flags([mode])}; only with {flags(list(GOES_WITH[name]))}")
    idle = [name for name in names if name in OF_A_NEW_RUN and not (name == "arms" and options.export_batch)]
    if options.run and idle:
        parser.error(f"{flags(idle)}: no effect with --run, whose run has settled it")
    custom = options.arms is not None and "custom" in options.arms.split(",")
    idle = [name for name in names if name in OF_CUSTOM and not (name == "output_mode" and options.import_replies)]
    if idle and not (custom or options.resume):
        parser.error(f"{flags(idle)}: only with --arms custom; what eval.json says of its own arms is changed there")


def check_options(parser: Any, options: Any) -> None:
    """Rules between flags, each of which ends with exit 2; fills in what depends on them."""
    if not any(name in given(parser, options) for name in MODES):
        parser.error("expected a mode, e.g. --demo or --plan")
    check_flags(parser, options)
    options.split = options.split or "test"
    if options.arms is not None and not all(options.arms.split(",")):
        parser.error(f"--arms: expected names joined by commas, got {options.arms!r}")
    custom = options.arms is not None and "custom" in options.arms.split(",")
    if custom and not (options.base_url and options.model):
        parser.error("--arms custom needs --base-url and --model")
    if (options.base_url or options.model) and not custom and not (options.resume and options.base_url):
        parser.error("--base-url and --model need --arms custom")
    if options.shard:
        index, _, count = options.shard.partition("/")
        if not ((index + count).isascii() and index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
            parser.error(f"--shard: expected I/N with 1 <= I <= N, got {options.shard!r}")
    if options.import_batch and not options.run:
        parser.error("--import-batch needs --run RUN, the run that --export-batch made or was given")
    if options.run and not (options.import_batch or options.export_batch):
        parser.error("--run goes with --export-batch or --import-batch")
    if options.batch_url and not options.export_batch:
        parser.error("--batch-url goes with --export-batch")
    if options.import_replies and not options.arm_label:
        parser.error("--import-replies FILE needs --arm-label NAME, what the recorded judge is called")
    if options.arm_label is not None and not (options.import_replies or custom):
        parser.error("--arm-label goes with --import-replies FILE or --arms custom")


# === Main ===


def open_streams() -> None:
    """UTF-8 on stdout and stderr; a process that was started with a closed one gets an empty one in its place."""
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (open until the end)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]


def close_stdout(problem: OSError) -> int:
    """What is left to print goes nowhere, so that Python has nothing to complain of at its end; the exit code.

    A reader that went away (141) is no error; a full disk is one (3).
    """
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(problem, BrokenPipeError):
        return 141
    report_error(f"stdout: {problem.strerror or problem}")
    return 3


def report_error(text: str) -> None:
    """One problem to stderr, each line on its own, hints marked as such."""
    for line in text.split("\n"):
        shown = "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in line)
        print(shown if shown.startswith("hint: ") else f"{PROGRAM}: error: {shown}", file=sys.stderr)


def run(options: Any) -> int:
    """Verify the pins, load the rooms, do what the mode says. Raises: PinError."""
    import os

    folder = os.path.abspath(options.folder) if options.folder else folder_of(options)
    if options.freeze:
        folders = [folder] + (evaluation_folders() if options.all else [])
        return freeze(list(dict.fromkeys(folders)), options)
    options.git_history = git_history(folder) if options.receipt or options.plan or options.generate else None
    asks = bool(options.generate or options.resume or options.probe)
    if not asks:
        lock_offline(children=options.run_pinned_code, copies=bool(options.rescore))
    config, inputs = verified(folder, skip_unbuilt=bool(options.verify or options.diff))
    modes = load_rooms(inputs, config, folder, at_once=THREADED if asks or options.demo else ())
    options.readers = own_readers(options.diff, folder) if options.diff else None
    result: int = modes.main(options, folder, config, inputs)
    return result


def folder_of(options: Any) -> str:
    """The evaluation that a given run or receipt is of; this folder when none here has its slug."""
    several = options.merge or options.diff or [None]
    given = options.rescore or options.resume or options.receipt or options.verify or several[0]
    return (evaluation_of(given) if given else None) or home()


def evaluation_of(given: str) -> str | None:
    """The folder here with the slug of a run or receipt, a '@2' behind its path left off; None when there is none."""
    import json
    import os

    path = given if os.path.exists(given) else given.rpartition("@")[0]
    manifest = os.path.join(path, "manifest.json") if path else ""
    if not os.path.isfile(manifest) or os.path.getsize(manifest) > 1 << 24:
        return None
    slugs = []
    for path in (manifest, *(os.path.join(folder, "eval.json") for folder in evaluation_folders())):
        try:
            slugs.append(json.loads(read_bytes(path)).get("slug"))
        except (ValueError, AttributeError, RecursionError, PinError):
            slugs.append(None)
    wanted, known = slugs[0], slugs[1:]
    return evaluation_folders()[known.index(wanted)] if wanted is not None and wanted in known else None


def own_readers(given: list[str], folder: str) -> list[tuple[Any, Any]]:
    """(recipe, check) for each of some runs, of the evaluation that it is of; of `folder` where its slug is unknown.

    Raises: PinError.
    """
    readers = []
    for number, path in enumerate(given):
        place = evaluation_of(path) or folder
        config, inputs = verified(place, skip_unbuilt=True)
        names = [
            (own_path(place, config, f"{name}.py"), f"{name}_{number}", f"{name}.py") for name in ("recipe", "check")
        ]
        recipe, check = (load(path, name, inputs[plain]) for path, name, plain in names)
        readers.append((recipe, check))
    return readers


def git_history(folder: str) -> str | None:
    """The commits that changed eval.json, with the blobs they put there; None without git or a repository."""
    import subprocess

    command = ["git", "-C", folder, "-c", "core.fsmonitor=false", "--no-pager", "log", "-m", "--full-history", "--raw"]
    command += ["--no-abbrev", "--no-ext-diff", "--format=commit %H %ct", "--", "eval.json"]
    try:
        found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.decode("utf-8", "replace")


def evaluation_folders() -> list[str]:
    """This folder and every folder of evals/ that holds an eval.json."""
    import os

    top = os.path.join(home(), "evals")
    names = sorted(os.listdir(top)) if os.path.isdir(top) else []
    folders = [os.path.join(top, name) for name in names]
    return [home()] + [folder for folder in folders if os.path.exists(os.path.join(folder, "eval.json"))]


def freeze(folders: list[str], options: Any) -> int:
    """Pin the inputs of some evaluations; refuses while a run on the old pins is incomplete."""
    import os

    for folder in folders:
        refuse_broken(folder)
    for folder in folders:
        config, _ = read_config(folder)
        waiting = [] if options.force else incomplete_runs(options.out, str(config.get("slug")))
        if waiting:
            finish = own_command(folder, "--resume", waiting[0])
            report_error(f"{waiting[0]} is incomplete and could not be resumed after a freeze")
            report_error(f"hint: finish it with: {finish} (or freeze all the same: --force)")
            return 3
        changes = freeze_config(folder)
        print(f"{os.path.join(folder, 'eval.json')}: {len(changes)} pins changed")
        for line in changes:
            print(f"  {line}")
    return 0


def incomplete_runs(out: str, slug: str) -> list[str]:
    """Runs under --out whose manifest says that replies are missing."""
    import json
    import os

    top = os.path.join(out, slug)
    found = []
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else []:
        path = os.path.join(top, name, "manifest.json")
        if not os.path.isfile(path):
            continue
        try:
            with open(path, encoding="utf-8") as stream:
                status = json.load(stream).get("status")
        except (OSError, ValueError, AttributeError):
            continue
        if status == "incomplete":
            found.append(os.path.join(top, name))
    return found


def main(argv: list[str] | None = None) -> int:
    open_streams()
    parser = build_parser()
    options = parser.parse_args(argv)
    check_options(parser, options)
    try:
        code = run(options)
    except PinError as error:
        report_error(str(error))
        code = 1
    except KeyboardInterrupt:
        report_error("interrupted")
        code = 130
    except BrokenPipeError as problem:
        return close_stdout(problem)
    try:
        sys.stdout.flush()
    except OSError as problem:
        return close_stdout(problem)
    return code


if __name__ == "__main__":
    sys.exit(main())
