"""Which output modes an endpoint really honours, found out with tiny requests, and the arm entry to use.

Several servers accept a forced tool or a schema and ignore it without a word. So each request of a probe asks in prose
for something else, a short greeting, and only its output fields ask for a verdict: a verdict that comes back all the
same was enforced by the server. Where none comes, one request as the recipe makes it shows whether the judge gives a
verdict when asked. A request field that the endpoint refuses is left out or renamed by a quirk of the arm, which is
printed; nothing is changed silently and nothing is kept. Uses the network, a few requests per arm and mode.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import callers
import calling
import client
import evaluation as evaluations
import generate
import messages
import modes
import refusals
import rows

# === Constants ===

PAIR = {"text": "How many legs does a spider have?", "answer_a": "Eight.", "answer_b": "Six, like every insect."}
CONTRARY = "Greet the reader in one short sentence of plain prose. Do not judge, do not call a function, write no JSON."
MAX_TOKENS = 1000  # enough for a reasoning model's thoughts about a pair this small, and a bound for one that rambles
MAX_CHANGES = 4  # refused fields that are worked around before an endpoint counts as unusable
LIMITS = client.Limits(max_retries=2, max_slow=3, max_unsure=0, cap_s=10.0, total_s=120.0)
QUIRKS: dict[str, dict[str, Any]] = {
    "max_tokens": {"rename": {"max_tokens": "max_completion_tokens"}},
    "reasoning_effort": {"omit": ["reasoning_effort"]},
    "reasoning": {"omit": ["reasoning_effort"]},
    "parallel_tool_calls": {"omit": ["parallel_tool_calls"]},
}
UNREACHABLE = (
    "connection",
    "tls",
    "certificate",
    "proxy",
    "timeout",
    "redirect",
    "auth",
    "no_credit",
    "not_found",
    "proxy_auth",
)
ORDER = ("forced", "works")  # a mode the server enforces comes before one that the judge follows of its own accord


class Finding(NamedTuple):
    """What became of one output mode.

    state: forced (enforced by the server) | works (the judge follows when asked) | ignored | refused | failed |
    unreachable (no connection, no such model, a key that is not accepted: nothing about the mode).
    """

    mode: str
    strict: bool
    state: str
    text: str
    requests: int
    quirks: dict[str, Any]


# === Requests ===


def config_for(config: dict[str, Any], arm: dict[str, Any], mode: str, strict: bool) -> dict[str, Any]:
    """The settings a recipe is given for one probe."""
    most = min(int(config["max_tokens"]), MAX_TOKENS)
    return {**config, "output_mode": mode, "strict": strict, "max_tokens": most}


def contrary(payload: dict[str, Any]) -> dict[str, Any]:
    """The same request with words that ask for a greeting: only its output fields still ask for a verdict."""
    word = " Mention JSON." if (payload.get("response_format") or {}).get("type") == "json_object" else ""
    return {**payload, "messages": [{"role": "user", "content": CONTRARY + word}]}


def with_quirk(arm: dict[str, Any], field: str) -> dict[str, Any] | None:
    """The arm with the quirk for a refused field; None when there is none, or it has been tried already."""
    quirk = QUIRKS.get(field)
    if quirk is None:
        return None
    found = dict(arm)
    if "rename" in quirk:
        found["rename"] = {**arm.get("rename", {}), **quirk["rename"]}
    if "omit" in quirk:
        found["omit"] = sorted({*arm.get("omit", []), *quirk["omit"]})
    return None if found == arm else found


def refused_field(outcome: client.Outcome) -> str | None:
    """The request field that a refusal is about, read back from the hint it led to."""
    return next((field for field, hint in refusals.FIELD_HINTS.items() if hint == outcome.hint), None)


# === One mode ===


Call = Callable[[dict[str, Any], dict[str, Any]], client.Outcome]  # (arm, payload) -> outcome


class Prober:
    """Tries the output modes of one arm; what the endpoint refused once is worked around from then on."""

    def __init__(self, call: Call, recipe: Any, config: dict[str, Any], arm: dict[str, Any]) -> None:
        self.call, self.recipe, self.config, self.arm = call, recipe, config, arm
        self.given = arm
        self.requests = 0

    def ask(self, payload: dict[str, Any]) -> client.Outcome:
        """One request, again with a quirk for each field that is refused."""
        outcome = client.Outcome("failed")
        for _ in range(MAX_CHANGES):
            self.requests += 1
            outcome = self.call(self.arm, payload)
            changed = with_quirk(self.arm, refused_field(outcome) or "") if outcome.state == "stop" else None
            if changed is None:
                break
            self.arm = changed
        return outcome

    def said(self, payload: dict[str, Any], mode: str) -> tuple[client.Outcome, dict[str, Any]]:
        """The outcome of a request, and its parsed verdict ({} without a reply)."""
        outcome = self.ask(payload)
        if outcome.state != "reply":
            return outcome, {}
        return outcome, self.recipe.parse(rows.reply_of(rows.reply_parts(outcome.reply)), mode)

    def probe(self, mode: str, strict: bool) -> Finding:
        """What the endpoint makes of one output mode."""
        before, self.arm = self.requests, {**self.arm, "output_mode": mode}
        payload = self.recipe.request(PAIR, config_for(self.config, self.arm, mode, strict))
        state, text = self.judge(payload, mode)
        return Finding(mode, strict, state, text, self.requests - before, self.quirks())

    def judge(self, payload: dict[str, Any], mode: str) -> tuple[str, str]:
        """(state, why) of one mode."""
        why = ""
        if mode != "text":
            outcome, verdict = self.said(contrary(payload), mode)
            if outcome.state != "reply":
                return refusal(outcome)
            if verdict["state"] == "ok":
                return "forced", "a verdict although the words asked for a greeting"
            why = f"asked for a greeting: {gist(outcome, verdict)}; "
        outcome, verdict = self.said(payload, mode)
        if outcome.state != "reply":
            return refusal(outcome)
        if verdict["state"] == "ok":
            return "works", why + "asked for a verdict: gives one" if why else "gives a verdict"
        return "ignored", why + f"asked for a verdict: {gist(outcome, verdict)}"

    def quirks(self) -> dict[str, Any]:
        """What had to be changed in the arm as it was given."""
        return {key: self.arm[key] for key in ("rename", "omit") if self.arm.get(key) != self.given.get(key)}


def refusal(outcome: client.Outcome) -> tuple[str, str]:
    """(state, why) of a mode that got no reply."""
    why = outcome.text or str(outcome.code)
    if outcome.code in UNREACHABLE:
        return "unreachable", f"{why} ({outcome.hint})" if outcome.hint else why
    refused = outcome.state == "invalid" or (outcome.http_status is not None and 400 <= outcome.http_status < 500)
    return "refused" if refused else "failed", why


def gist(outcome: client.Outcome, verdict: dict[str, Any]) -> str:
    """What a reply without a verdict was, in a few words."""
    parts = rows.reply_parts(outcome.reply)
    if parts["tool_calls"]:
        return f"a call with unusable arguments ({verdict['code']})"
    if parts["finish_reason"] == "length":
        return f"cut off at the token limit ({verdict['code']})"
    words = refusals.printable(parts["content"], 60) if isinstance(parts["content"], str) else ""
    return f"{verdict['code']}: {words!r}" if words else str(verdict["code"])


# === One arm ===


def findings_of(prober: Prober, config: dict[str, Any]) -> list[Finding]:
    """All modes of one arm; a tool with `strict` too where the calls come but do not follow the schema."""
    if config.get("tool_choice") is None:
        return [prober.probe("text", False)]
    strict = bool(prober.given.get("strict"))
    found = []
    for mode in evaluations.OUTPUT_MODES:
        if mode == "json_object" and prober.given.get("format") == "anthropic":
            continue  # the dialect has none
        found.append(prober.probe(mode, strict))
        if found[-1].state == "unreachable":
            break  # the other modes would say the same
        if mode in ("tool", "required") and not strict and "unusable arguments" in found[-1].text:
            found.append(prober.probe(mode, True))
    return found


def best(found: list[Finding]) -> Finding | None:
    """The mode to use: the first that is forced, else the first that works; None when none does."""
    usable = [finding for state in ORDER for finding in found if finding.state == state]
    return usable[0] if usable else None


def entry_of(arm: dict[str, Any], finding: Finding) -> dict[str, Any]:
    """The arm's entry for eval.json with the mode and the quirks found."""
    entry = {**arm, "output_mode": finding.mode, **finding.quirks}
    if finding.strict:
        entry["strict"] = True
    return entry


def caller(key: str | None, name: str, timeout_s: float | None) -> Call:
    """Sends each probe with a client of its own, so that a refusal says what to change every time."""
    timeouts = client.Timeouts()
    if timeout_s:
        timeouts = timeouts._replace(total_s=timeout_s)

    def call(arm: dict[str, Any], payload: dict[str, Any]) -> client.Outcome:
        with client.Client(arm, key, limits=LIMITS, timeouts=timeouts, name=name) as judge:
            return judge.call(payload)

    return call


# === Show ===


def lines_of(name: str, arm: dict[str, Any], found: list[Finding], chosen: Finding | None) -> list[str]:
    """One arm's findings for people."""
    lines = [f"{name}: {arm['endpoint']}, model {arm['model']}, {sum(f.requests for f in found)} requests"]
    for finding in found:
        mode = finding.mode + (" + strict" if finding.strict else "")
        lines.append(f"  {mode:<18} {finding.state:<8} {finding.text}")
    quirks = found[-1].quirks if found else {}
    lines += [f"  the endpoint needs {json.dumps({key: value})}" for key, value in quirks.items()]
    if chosen is None:
        return [*lines, "  no output mode gives a verdict here"]
    shown = json.dumps(entry_of(arm, chosen), ensure_ascii=False)
    return [*lines, f"  use the mode {chosen.mode}; arm entry for eval.json:", f"  {json.dumps(name)}: {shown}"]


def as_data(arm: dict[str, Any], found: list[Finding], chosen: Finding | None) -> dict[str, Any]:
    """One arm's findings for machines."""
    return {
        "endpoint": arm["endpoint"],
        "model": arm["model"],
        "modes": [finding._asdict() for finding in found],
        "entry": entry_of(arm, chosen) if chosen else None,
    }


def key_of(arm: evaluations.Arm) -> str | None:
    """The arm's key from its variable. Raises: SettingError for one that no header can carry."""
    variable = arm.settings.get("key_env")
    key = os.environ.get(variable, "").strip() if variable else None
    trouble = client.key_problem(key) if key is not None else None
    if trouble:
        raise evaluations.SettingError(f"arm {arm.name}: environment variable {variable}: {trouble}")
    return key


def main_probe(evaluation: evaluations.Evaluation, options: Any) -> int:
    """Probe the chosen arms; 0 when each has a mode that gives verdicts, 1 when one has none, 3 when not reached."""
    arms = modes.chosen_arms(evaluation, options, list(evaluation.config.get("default_arms", [])))
    arms = [arm for arm in arms if not arm.control]
    problems = evaluations.missing_keys(arms, dict(os.environ))
    if problems:
        raise generate.NotComplete("\n".join(problems), "export the variable, or choose other --arms")
    if not arms:
        raise evaluations.SettingError("no arm that asks a model: a control has nothing to probe")
    data, code = {}, 0
    for arm in arms:
        key = key_of(arm)
        callers.refuse_keys_in(evaluation.inputs, {arm.name: key})
        calling.refuse_keys_in_settings([arm], {arm.name: key})
        call = caller(key, arm.name, options.timeout)
        found = findings_of(Prober(call, evaluation.recipe, evaluation.config, arm.settings), evaluation.config)
        chosen = best(found)
        data[arm.name] = as_data(arm.settings, found, chosen)
        code = max(code, 0 if chosen else 3 if found[-1].state == "unreachable" else 1)
        if options.format != "json":
            messages.show("\n".join(lines_of(arm.name, arm.settings, found, chosen)) + "\n")
    if options.format == "json":
        messages.show_form(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "json")
    return code
