"""`judge.py import`: logs of other evaluation tools as a results file, and a results or judged file as csv or jsonl.

Each reader gives rows in the words of a results file and says what it could not map: answers that are not there are
left out and listed, never made up, and so are fields that a results file has no place for. Tested with logs freshly
written by inspect-ai 0.3.285, promptfoo 0.121.20, deepeval 4.3.1, lm-eval 0.4.13 and evals 3.0.1.post1. No network.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import evidence
import messages
import results
import sheets
import zstd

# === Constants ===

VOICE = messages.Voice("judge")
FIELDS = ("id", "category", "prompt", "rubric", "reference", "answer")
# Column names that mean one of our fields, in order of preference.
ALIASES = {
    "id": ("id", "item_id", "question_id", "sample_id", "doc_id", "uid"),
    "category": ("category", "type", "task", "subject", "tag"),
    "prompt": ("prompt", "input", "question", "instruction", "query", "text"),
    "rubric": ("rubric", "criteria", "grading_notes"),
    "reference": ("reference", "expected", "target", "ideal", "expected_output", "gold", "label"),
    "answer": ("answer", "output", "response", "completion", "actual_output", "prediction", "generated"),
}
# Assertions of promptfoo whose value says what a good answer is, and those whose value is the right answer.
RUBRIC_ASSERTS = ("llm-rubric", "g-eval", "model-graded-closedqa")
REFERENCE_ASSERTS = (
    "equals",
    "contains",
    "icontains",
    "factuality",
    "model-graded-factuality",
    "similar",
    "starts-with",
)
STORED, DEFLATED, ZSTANDARD = 0, 8, 93  # compression methods of a zip entry
ENCRYPTED = 1  # the bit of an entry's flags that says so
CONVERT_HINT = "inspect writes it as JSON with: inspect log convert FILE --to json --output-dir DIR"
MAX_NAMED = 10


# === Records ===


@dataclass
class Imported:
    """What a log holds: its answers, whose they are, and what could not be mapped."""

    model: str = ""
    task_set: str = ""
    engine: str = ""
    engine_version: str = ""
    settings: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # "id: why"
    notes: list[str] = field(default_factory=list)
    unmapped: set[str] = field(default_factory=set)

    def add(self, row: dict[str, Any], passed: bool | None = None) -> None:
        """Keep one answer; missing texts become empty ones."""
        whole = {key: str(row.get(key) or "") for key in FIELDS}
        self.rows.append({**whole, "checks": {"passed": passed}} if passed is not None else whole)


# === Texts ===


def plain_text(value: Any) -> str:
    """A text from what tools keep as one: a text, a number, a list of parts or messages, an object as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n\n".join(text for text in map(part_text, value) if text)
    return json.dumps(value, ensure_ascii=False)


def part_text(part: Any) -> str:
    """One part of a message, or one message of a chat with its role where that is not the user."""
    if not isinstance(part, dict):
        return plain_text(part)
    if "role" in part:
        text = plain_text(part.get("content"))
        return text if part["role"] == "user" else f"[{part['role']}] {text}"
    return plain_text(part.get("text") if "text" in part else part)


def chat_text(text: str) -> str:
    """A prompt that was kept as the JSON text of a chat, as text; any other text unchanged."""
    if not text.lstrip().startswith("["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_chat = isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value)
    return plain_text(value) if is_chat else text


def alternatives(value: Any) -> str:
    """A reference: several right answers are joined by 'or'."""
    if isinstance(value, list):
        return " or ".join(plain_text(one) for one in value)
    return plain_text(value)


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def short(value: Any) -> str:
    """The first line of a text, at most 120 characters."""
    line = plain_text(value).strip().split("\n", 1)[0]
    return line if len(line) <= 120 else line[:117] + "..."


def need_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise results.FileProblem(f"{where}: expected an object, got {results.kind_of(value)}")
    return value


def need_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise results.FileProblem(f"{where}: expected a list, got {results.kind_of(value)}")
    return value


def json_rows(path: str) -> list[dict[str, Any]]:
    """The objects of a JSONL file, or of a JSON file that holds one list of them. Raises: FileProblem."""
    data = results.read_bytes(path)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        listed = need_list(results.read_value(path, data), path)
        found = [need_object(one, f"{path}: item {place}") for place, one in enumerate(listed, 1)]
        data = b""
    else:
        found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip(b" \t\r\n\xef\xbb\xbf"):
            found.append(need_object(results.parsed(line, f"{path}:{number}"), f"{path}:{number}"))
    if not found:
        raise results.FileProblem(f"{path}: is empty")
    return found


# === inspect ===


def read_inspect(path: str, options: Any) -> Imported:
    """A log of inspect-ai, .json or .eval; each epoch is an answer of its own (id, id#2, …)."""
    head, samples = inspect_log(path)
    told = need_object(head.get("eval"), f"{path}: eval")
    found = Imported(
        model=str(told.get("model") or ""),
        task_set=str(told.get("task") or ""),
        engine="inspect-ai",
        engine_version=str(as_object(told.get("packages")).get("inspect_ai") or ""),
        settings=plain_text(told.get("model_generate_config") or ""),
    )
    for place, sample in enumerate(samples, 1):
        inspect_sample(need_object(sample, f"{path}: sample {place}"), found)
    return found


def inspect_log(path: str) -> tuple[dict[str, Any], list[Any]]:
    """(header, samples) of a log. Raises: FileProblem."""
    import zipfile

    if os.path.exists(path) and not os.path.isfile(path):  # is_zipfile would wait for a pipe
        raise results.FileProblem(f"{path}: cannot be read: expected a regular file")
    if not zipfile.is_zipfile(path):
        whole = need_object(results.read_value(path), path)
        return whole, need_list(whole.get("samples"), f"{path}: samples")
    try:
        with zipfile.ZipFile(path) as log:
            if sum(max(entry.file_size, entry.compress_size) for entry in log.infolist()) > results.MAX_BYTES:
                raise results.FileProblem(f"{path}: is larger than {results.MAX_BYTES} bytes unpacked")
            head = zip_value(log, "header.json", path)
            names = sorted(name for name in log.namelist() if name.startswith("samples/"))
            samples = [zip_value(log, name, path) for name in names]
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, OSError) as error:
        raise results.FileProblem(f"{path}: not a log of inspect-ai, or damaged: {error}", CONVERT_HINT) from None
    return need_object(head, f"{path}: header.json"), samples


def zip_value(log: Any, name: str, path: str) -> Any:
    """The JSON value of one file of an archive. Raises: FileProblem naming both, what opening an archive raises."""
    import zipfile

    where = f"{path}: {name}"
    try:
        entry = log.getinfo(name)
    except KeyError:
        raise results.FileProblem(f"{where}: is missing: not a log of inspect-ai", CONVERT_HINT) from None
    if entry.flag_bits & ENCRYPTED:
        raise results.FileProblem(f"{where}: is encrypted", "decrypt the log first")
    if entry.compress_type not in (STORED, DEFLATED, ZSTANDARD):
        text = f"{where}: expected an entry that is stored, deflated or packed with Zstandard"
        raise results.FileProblem(f"{text}, got compression method {entry.compress_type}", CONVERT_HINT)
    try:
        data = zip_entry(log, entry)
    except (zipfile.BadZipFile, zstd.BadData, zlib.error, EOFError) as error:
        raise results.FileProblem(f"{where}: damaged: {error or 'ends too early'}", CONVERT_HINT) from None
    return results.parsed(data, where)


def zip_entry(log: Any, entry: Any) -> bytes:
    """The content of one file of an archive, also of one packed with Zstandard, which zipfile reads from 3.14 on.

    Raises: what zipfile and zlib raise, BadData.
    """
    if entry.compress_type != ZSTANDARD:
        return bytes(log.read(entry))
    log.fp.seek(entry.header_offset)
    head = log.fp.read(30)
    log.fp.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), os.SEEK_CUR)
    data = zstd.unpacked(log.fp.read(entry.compress_size), entry.file_size)
    if zlib.crc32(data) != entry.CRC:
        raise zstd.BadData(f"checksum expected {entry.CRC:08x}, got {zlib.crc32(data):08x}")
    return data


def inspect_sample(sample: dict[str, Any], found: Imported) -> None:
    """One sample: its input with the choices, the model's completion, the target."""
    kept = {
        key: resolved(sample.get(key), as_object(sample.get("attachments"))) for key in ("input", "output", "target")
    }
    epoch = sample.get("epoch") or 1
    name = str(sample.get("id")) + (f"#{epoch}" if epoch != 1 else "")
    answer = inspect_answer(kept["output"])
    if sample.get("error") or answer is None:
        why = as_object(sample.get("error")).get("message")
        found.left_out.append(f"{name}: {short(why or 'no output')}")
        return
    choices = as_list(sample.get("choices"))
    listed = "\n".join(f"{chr(65 + place)}) {choice}" for place, choice in enumerate(choices))
    metadata = as_object(sample.get("metadata"))
    row = {
        "id": name,
        "category": plain_text(metadata.get("category")),
        "prompt": plain_text(kept["input"]) + (f"\n\n{listed}" if listed else ""),
        "rubric": plain_text(metadata.get("rubric")),
        "reference": alternatives(kept["target"]),
        "answer": answer,
    }
    found.add(row, inspect_passed(as_object(sample.get("scores"))))
    found.unmapped.update(f"metadata.{key}" for key in metadata if key not in ("category", "rubric"))


def inspect_answer(output: Any) -> str | None:
    """The text of a model's output; None when there is none."""
    if not isinstance(output, dict) or not as_list(output.get("choices")):
        return None
    if isinstance(output.get("completion"), str):
        return str(output["completion"])
    first = output["choices"][0]
    return plain_text(as_object(first.get("message")).get("content")) if isinstance(first, dict) else None


def inspect_passed(scores: dict[str, Any]) -> bool | None:
    """Whether the first scorer said correct; None for a score that is neither right nor wrong."""
    first = next(iter(scores.values()), None)
    value = first.get("value") if isinstance(first, dict) else None
    if value in ("C", "I"):
        return bool(value == "C")
    return bool(value) if value in (0, 1) else None


def resolved(value: Any, attachments: dict[str, Any]) -> Any:
    """A value with references to the log's attachments (long texts are kept once) replaced by their texts."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [resolved(one, attachments) for one in value]
    if isinstance(value, dict):
        return {key: resolved(one, attachments) for key, one in value.items()}
    return value


# === promptfoo ===


def read_promptfoo(path: str, options: Any) -> Imported:
    """An output file of promptfoo (.json or .jsonl); of several providers --model chooses one."""
    version, rows = promptfoo_rows(path)
    names = list(dict.fromkeys(promptfoo_provider(row) for row in rows))
    name = chosen(names, options.model, path)
    found = Imported(model=name, engine="promptfoo", engine_version=version)
    mine = promptfoo_own(rows, name, found)
    prompts = list(dict.fromkeys(str(row.get("promptId") or as_object(row.get("prompt")).get("label")) for row in mine))
    for row in sorted(mine, key=promptfoo_place):
        number = prompts.index(str(row.get("promptId") or as_object(row.get("prompt")).get("label"))) + 1
        promptfoo_row(row, f"-prompt-{number}" if len(prompts) > 1 else "", found)
    if len(names) > 1:
        found.notes.append(f"only {name}; the file also holds {', '.join(one for one in names if one != name)}")
    return found


def promptfoo_own(rows: list[dict[str, Any]], name: str, found: Imported) -> list[dict[str, Any]]:
    """The results of one provider; one whose test has no number, which names the answer, is left out and said."""
    own = []
    for place, row in enumerate(rows, 1):
        test = row.get("testIdx")
        if promptfoo_provider(row) != name:
            continue
        if test is None or type(test) is int:
            own.append(row)
        else:
            got = json.dumps(test)[:60]
            found.left_out.append(f"result {place}: field 'testIdx': expected a whole number, got {got}")
    return own


def promptfoo_place(row: dict[str, Any]) -> tuple[int, int]:
    """Where a result stands: its test, then its prompt where that is a number."""
    prompt = row.get("promptIdx")
    return row.get("testIdx") or 0, prompt if type(prompt) is int else 0


def promptfoo_rows(path: str) -> tuple[str, list[dict[str, Any]]]:
    """(version, rows) of an output file. Raises: FileProblem."""
    data = results.read_bytes(path)
    try:
        whole = results.parsed(data, path)
    except evidence.EvidenceError:
        return "", json_rows(path)
    if isinstance(whole, dict) and "results" not in whole:
        return "", json_rows(path)
    inner = need_object(whole, path)["results"]
    listed = need_list(inner.get("results") if isinstance(inner, dict) else inner, f"{path}: results")
    version = str(as_object(whole.get("metadata")).get("promptfooVersion") or "")
    return version, [need_object(row, f"{path}: result {place}") for place, row in enumerate(listed, 1)]


def promptfoo_provider(row: dict[str, Any]) -> str:
    provider = row.get("provider")
    if isinstance(provider, dict):
        return str(provider.get("label") or provider.get("id") or "")
    return str(provider or "")


def promptfoo_row(row: dict[str, Any], suffix: str, found: Imported) -> None:
    """One result: the prompt as sent, the output, what its assertions say."""
    case = as_object(row.get("testCase"))
    given = as_object(row.get("vars") or case.get("vars"))
    name = f"test-{(row.get('testIdx') or 0) + 1}{suffix}"
    response = as_object(row.get("response"))
    if "output" not in response:
        found.left_out.append(f"{name}: {short(row.get('error') or response.get('error') or 'no output')}")
        return
    asserts = [one for one in as_list(case.get("assert")) if isinstance(one, dict)]
    rubric = [plain_text(one.get("value")) for one in asserts if one.get("type") in RUBRIC_ASSERTS]
    right = [plain_text(one.get("value")) for one in asserts if one.get("type") in REFERENCE_ASSERTS]
    metadata = as_object(case.get("metadata"))
    first = next((given[key] for key in ALIASES["reference"] if given.get(key)), None)
    whole = {
        "id": name,
        "category": plain_text(metadata.get("category") or given.get("category")),
        "prompt": chat_text(plain_text(as_object(row.get("prompt")).get("raw"))),
        "rubric": "\n".join(rubric) or plain_text(given.get("rubric")),
        "reference": plain_text(first) or (right[0] if right else ""),
        "answer": plain_text(response["output"]),
    }
    found.add(whole, row["success"] if asserts and isinstance(row.get("success"), bool) else None)
    others = {str(one.get("type")) for one in asserts} - {*RUBRIC_ASSERTS, *REFERENCE_ASSERTS}
    found.unmapped.update(f"assert {kind}" for kind in others)


def chosen(names: list[str], wanted: str | None, path: str) -> str:
    """The one model of a log, or the one asked for. Raises: FileProblem when it has to be named."""
    if wanted in names:
        return str(wanted)
    if len(names) != 1:
        hint = f"choose one with --model: {', '.join(names[:MAX_NAMED])}"
        raise results.FileProblem(f"{path}: holds answers of {len(names)} models; a results file holds one", hint)
    return names[0]


# === deepeval ===


def read_deepeval(path: str, options: Any) -> Imported:
    """A test run of deepeval (.deepeval/.latest_test_run.json, or of its results folder), or a saved dataset."""
    whole = results.read_value(path)
    whole = whole.get("testRunData", whole) if isinstance(whole, dict) else whole
    cases = whole.get("testCases") if isinstance(whole, dict) else whole
    found = Imported(engine="deepeval")
    for place, case in enumerate(need_list(cases, f"{path}: testCases"), 1):
        deepeval_case(need_object(case, f"{path}: test case {place}"), place, found)
    turns = len(as_list(whole.get("conversationalTestCases"))) if isinstance(whole, dict) else 0
    if turns:
        found.notes.append(f"{turns} conversational test cases have no single answer and are left out")
    return found


def deepeval_case(case: dict[str, Any], place: int, found: Imported) -> None:
    """One test case; names are camel case in test runs and snake case in datasets."""
    answer = case.get("actualOutput", case.get("actual_output"))
    name = str(case.get("name") or f"case-{place}")
    if answer is None:
        found.left_out.append(f"{name}: no actual output")
        return
    tags = as_list(case.get("tags"))
    row = {
        "id": name,
        "category": plain_text(tags[0]) if tags else "",
        "prompt": plain_text(case.get("input")),
        "reference": plain_text(case.get("expectedOutput", case.get("expected_output"))),
        "answer": plain_text(answer),
    }
    success = case.get("success")
    found.add(row, success if isinstance(success, bool) and case.get("metricsData") else None)
    texts = ("context", "retrievalContext", "retrieval_context", "toolsCalled", "tools_called", "expectedTools")
    found.unmapped.update(key for key in texts if case.get(key))


# === lm-eval ===


def read_lm_eval(path: str, options: Any) -> Imported:
    """A samples_*.jsonl of lm-eval (written with --log_samples), or the folder that holds several."""
    files = lm_eval_files(path)
    if not files:
        raise results.FileProblem(f"{path}: holds no samples_*.jsonl", "run lm_eval with --log_samples")
    found = Imported(engine="lm-eval")
    for file in files:
        task, _ = lm_eval_name(file)
        lm_eval_head(lm_eval_beside(file), found)
        found.task_set = found.task_set or task
        seen: set[str] = set()
        for row in json_rows(file):
            lm_eval_row(row, task, f"{task}/" if len(files) > 1 else "", seen, found)
    return found


def lm_eval_files(path: str) -> list[str]:
    """The samples files of a folder; any other path is its own samples file."""
    if not os.path.isdir(path):
        return [path]
    names = sorted(name for name in os.listdir(path) if re.fullmatch(r"samples_.*\.jsonl", name))
    return [os.path.join(path, name) for name in names]


def lm_eval_beside(path: str) -> str:
    """The results file that belongs to a samples file."""
    return os.path.join(os.path.dirname(path), f"results_{lm_eval_name(path)[1]}.json")


def lm_eval_name(path: str) -> tuple[str, str]:
    """(task, time stamp) of a samples file's name."""
    match = re.fullmatch(r"samples_(.*?)_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl", os.path.basename(path))
    return (match.group(1), match.group(2)) if match else (os.path.basename(path).split(".")[0], "")


def lm_eval_head(beside: str, found: Imported) -> None:
    """Model and version from the results file beside the samples, where it is."""
    if not os.path.exists(beside):
        return
    head = need_object(results.read_value(beside), beside)
    config = as_object(head.get("config"))
    arguments = config.get("model_args")
    told = (
        arguments
        if isinstance(arguments, dict)
        else dict(one.partition("=")[::2] for one in str(arguments or "").split(","))
    )
    found.model = str(
        head.get("model_name") or told.get("model") or told.get("pretrained") or config.get("model") or ""
    )
    found.engine_version = str(head.get("lm_eval_version") or "")
    found.settings = plain_text(config.get("gen_kwargs") or "")


def lm_eval_row(row: dict[str, Any], task: str, prefix: str, seen: set[str], found: Imported) -> None:
    """One document. Of several filters the first counts; a likelihood task has no answer text."""
    name = f"{prefix}{row.get('doc_id')}"
    if name in seen:
        if f"filter {row.get('filter')}" not in found.notes:
            found.notes.append(f"filter {row.get('filter')}")
        return
    seen.add(name)
    texts = [text for group in as_list(row.get("resps")) for text in (group if isinstance(group, list) else [group])]
    if not texts or not all(isinstance(text, str) for text in texts):
        found.left_out.append(f"{name}: a likelihood task, no answer text")
        return
    metric = next(iter(as_list(row.get("metrics"))), None)
    value = row.get(metric) if isinstance(metric, str) else None
    for number, text in enumerate(texts, 1):
        whole = {
            "id": name + (f"#{number}" if number > 1 else ""),
            "category": task,
            "prompt": lm_eval_prompt(row.get("arguments")),
            "reference": alternatives(row.get("target")),
            "answer": text,
        }
        found.add(whole, bool(value) if value in (0, 1) and len(texts) == 1 else None)


def lm_eval_prompt(arguments: Any) -> str:
    """The prompt as it was sent: arguments are an object by name since 0.4.3, a list before."""
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else arguments
    first = first.get("arg_0") if isinstance(first, dict) else first
    while isinstance(first, list) and first and not (isinstance(first[0], dict) and "role" in first[0]):
        first = first[0]
    return chat_text(plain_text(first))


# === openai evals ===


def read_openai_evals(path: str, options: Any) -> Imported:
    """A record file of openai/evals: sampling events, with the match events of the same sample."""
    rows = json_rows(path)
    spec: dict[str, Any] = next((row["spec"] for row in rows if isinstance(row.get("spec"), dict)), {})
    matches = {str(row.get("sample_id")): as_object(row.get("data")) for row in rows if row.get("type") == "match"}
    found = Imported(
        model=plain_text(next(iter(as_list(spec.get("completion_fns"))), "")),
        task_set=str(spec.get("eval_name") or ""),
        engine="openai-evals",
        settings=plain_text(spec.get("run_config") or ""),
    )
    counts: dict[str, int] = {}
    for row in rows:
        if row.get("type") == "sampling":
            openai_sampling(row, matches, counts, found)
        elif row.get("type") not in (None, "match"):
            found.unmapped.add(f"event {row['type']}")
    return found


def openai_sampling(row: dict[str, Any], matches: dict[str, Any], counts: dict[str, int], found: Imported) -> None:
    """One sampling event; further ones of the same sample are answers of their own (id#2, …)."""
    sample, data = str(row.get("sample_id")), as_object(row.get("data"))
    counts[sample] = counts.get(sample, 0) + 1
    name = sample + (f"#{counts[sample]}" if counts[sample] > 1 else "")
    sampled = data.get("sampled")
    answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
    if answer is None:
        found.left_out.append(f"{name}: nothing was sampled")
        return
    match = matches.get(sample, {})
    prompt = data.get("prompt")
    whole = {
        "id": name,
        "prompt": chat_text(prompt) if isinstance(prompt, str) else plain_text(prompt),
        "reference": alternatives(match.get("expected")),
        "answer": plain_text(answer),
    }
    found.add(whole, match["correct"] if isinstance(match.get("correct"), bool) else None)


# === csv and jsonl ===


def read_csv(path: str, options: Any) -> Imported:
    """A table with a header line; comma, semicolon or tab."""
    return flat_rows([row.cells for row in sheets.read_sheet(path)], path, options)


def read_jsonl(path: str, options: Any) -> Imported:
    """One object a line, or a JSON list of objects; a field may lie deeper (--field answer=response.text)."""
    return flat_rows(json_rows(path), path, options)


def flat_rows(rows: list[dict[str, Any]], path: str, options: Any) -> Imported:
    """Rows whose fields have names of their own. Raises: FileProblem when prompt or answer is not found."""
    names = field_names(rows[0], options.field, path)
    models = list(dict.fromkeys(plain_text(row.get("model")) for row in rows if row.get("model")))
    found = Imported(model="" if not models else chosen(models, options.model, path))
    for place, row in enumerate(rows, 1):
        if models and plain_text(row.get("model")) != found.model:
            continue
        value = {ours: plain_text(deep(row, theirs)) for ours, theirs in names.items()}
        if deep(row, names["answer"]) is None:
            found.left_out.append(f"{value.get('id') or place}: field '{names['answer']}' is not there")
            continue
        found.add({"id": str(place), **value}, passed_of(row))
        used = {theirs.partition(".")[0] for theirs in names.values()} | {"model", "checks", "checks_passed"}
        found.unmapped.update(set(map(str, row)) - used)
    return found


def field_names(row: dict[str, Any], given: Sequence[str], path: str) -> dict[str, str]:
    """ours -> theirs, from --field and from names that are commonly used. Raises: FileProblem."""
    names = {}
    for pair in given:
        ours, mark, theirs = pair.partition("=")
        if ours not in FIELDS or not mark or not theirs:
            raise results.FileProblem(f"--field {pair}: expected OURS=THEIRS, OURS one of {', '.join(FIELDS)}")
        if deep(row, theirs) is None and theirs not in row:
            raise results.FileProblem(f"{path}: field {theirs!r} (--field {pair}) is not in the first row")
        names[ours] = theirs
    for ours, aliases in ALIASES.items():
        usual = next((alias for alias in aliases if alias in row and alias not in names.values()), None)
        if usual is not None:
            names.setdefault(ours, usual)
    for ours in ("prompt", "answer"):
        if ours not in names:
            hint = f"name it: --field {ours}=COLUMN (columns: {', '.join(map(str, row))})"
            raise results.FileProblem(f"{path}: no column for '{ours}' is found", hint)
    return names


def columns_help() -> str:
    """What `import --help` says of tables: which column names are understood, and an example that works."""
    lines = [f"  {ours:<10} {', '.join(names)}" for ours, names in ALIASES.items()]
    return "\n".join(
        [
            "csv (comma, semicolon or tab, with a header line), jsonl and JSON lists: columns by any of these names,",
            "else by --field OURS=THEIRS; prompt and answer must be there, id is the row's number where it is missing:",
            *lines,
            "  model      whose answer it is (of several, --model chooses one)",
            "  checks_passed  true or false",
            "",
            "answers.csv:          id,category,question,reference,answer",
            "                      q1,geography,Capital of Peru?,Lima,It is Lima.",
            "",
            "    python3 -I judge.py import answers.csv --from csv --model my-model --out results.json",
        ]
    )


def deep(row: dict[str, Any], name: str) -> Any:
    """A field by its name, or by a path of names joined with dots."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def passed_of(row: dict[str, Any]) -> bool | None:
    """Whether checks passed, as a results file or its csv says."""
    checks = row.get("checks")
    value = checks.get("passed") if isinstance(checks, dict) else row.get("checks_passed")
    return {"true": True, "false": False}.get(str(value).lower())


# === Import ===

READERS: dict[str, Callable[[str, Any], Imported]] = {
    "inspect": read_inspect,
    "promptfoo": read_promptfoo,
    "deepeval": read_deepeval,
    "lm-eval": read_lm_eval,
    "openai-evals": read_openai_evals,
    "csv": read_csv,
    "jsonl": read_jsonl,
}


def main_import(options: Any) -> int:
    work = export_file if options.export else import_log
    return VOICE.guard((evidence.EvidenceError,), work, options)


def import_log(options: Any) -> int:
    refuse_existing(options, files_read(options))
    found = READERS[options.source](options.file, options)
    for name in found.left_out[:MAX_NAMED]:
        messages.say(f"judge: left out: {name}")
    if len(found.left_out) > MAX_NAMED:
        messages.say(f"judge: left out: … and {len(found.left_out) - MAX_NAMED} more")
    if not found.rows:
        raise results.FileProblem(f"{options.file}: no answer could be read")
    whole = results_file(found, options)
    problems = results.item_problems(whole["results"], results.ITEM_TEXTS, options.file)
    results.refuse(problems, "every answer needs an id of its own")
    evidence.write_atomic(options.out, results.published(whole))
    say_unmapped(found, whole)
    messages.show(f"{len(found.rows)} answers of {whole['run']['model']}, {len(found.left_out)} left out\n")
    print(f"\nwritten: {options.out}")
    return 0


def files_read(options: Any) -> list[str]:
    """The files a log is read from; a folder that is none, or not there, stands for itself."""
    if options.source != "lm-eval":
        return [options.file]
    files = lm_eval_files(options.file) or [options.file]
    return [*files, *(lm_eval_beside(path) for path in files)]


def refuse_existing(options: Any, read: Sequence[str]) -> None:
    """Keep what stands in the place of --out, and what is read even with --overwrite. Raises: FileProblem."""
    results.check_out(options.out, *read)
    if os.path.exists(options.out) and not options.overwrite:
        raise results.FileProblem(f"{options.out}: exists", "choose another --out, or replace it with --overwrite")


def results_file(found: Imported, options: Any) -> dict[str, Any]:
    """The results file of what was read, with the names given on the command line."""
    passed = [row["checks"]["passed"] for row in found.rows if "checks" in row]
    run = {
        "model": options.model or found.model or "unknown",
        "quant": "",
        "engine": found.engine,
        "engine_version": found.engine_version,
        "settings": found.settings,
        "task_set": options.task_set or found.task_set or os.path.basename(options.file),
        "task_set_version": "",
        "checks_passed": sum(passed),
        "tasks": len(found.rows),
    }
    rows = [{**row, "rubric": row["rubric"] or options.rubric} for row in found.rows]
    return {"run": run, "results": rows}


def say_unmapped(found: Imported, whole: dict[str, Any]) -> None:
    """What a results file has no place for, and what a judge will miss."""
    rows = whole["results"]
    for key in ("category", "rubric", "reference"):
        empty = sum(not row[key] for row in rows)
        if empty:
            advice = "; give one for all with --rubric" if key == "rubric" else ""
            messages.say(f"judge: note: {empty} of {len(rows)} answers have no {key}{advice}")
    if whole["run"]["model"] == "unknown":
        messages.say("judge: note: the log does not name the model; give it with --model")
    for note in found.notes:
        messages.say(f"judge: note: not mapped: {note}" if note.startswith("filter ") else f"judge: note: {note}")
    if found.unmapped:
        messages.say(f"judge: note: not mapped: {', '.join(sorted(found.unmapped))}")


# === Export ===


def export_file(options: Any) -> int:
    refuse_existing(options, [options.file])
    rows = exported_rows(options.file)
    if options.export == "jsonl":
        evidence.write_atomic(options.out, [evidence.row_bytes(row) for row in rows])
    else:
        evidence.write_atomic(options.out, csv_bytes(rows))
    print(f"{len(rows)} rows\n\nwritten: {options.out}")
    return 0


def exported_rows(path: str) -> list[dict[str, Any]]:
    """The items of a results or judged file. Raises: FileProblem."""
    value = results.read_value(path)
    if isinstance(value, dict) and "judge" in value:
        whole = results.read_judged(path)
        rows: list[dict[str, Any]] = whole["pairs" if whole["judge"].get("mode") == "compare" else "results"]
        return rows
    whole = results.read_results(path, results.COMPARE)
    return [{"model": whole["run"]["model"], **row} for row in whole["results"]]


def csv_bytes(rows: Sequence[dict[str, Any]]) -> bytes:
    """Rows as csv; one level of objects becomes columns (judge.score as judge_score), deeper values JSON text."""
    flat = [dict(flattened(row)) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in flat:
        writer.writerow([row.get(name, "") for name in names])
    return out.getvalue().encode("utf-8", "surrogatepass")


def flattened(row: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """(column, value) pairs of one row."""
    for key, value in row.items():
        inner = value.items() if isinstance(value, dict) else None
        for name, one in inner if inner is not None else [("", value)]:
            column = f"{key}_{name}" if inner is not None else key
            if one is None:
                yield column, ""
            elif isinstance(one, bool):
                yield column, "true" if one else "false"
            else:
                yield column, one if isinstance(one, (str, int, float)) else json.dumps(one, ensure_ascii=False)
