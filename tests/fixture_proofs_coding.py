"""Proofs of the coding pairs: each passes on the better answer and fails on the other for the planted reason."""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import io
import re
import unittest
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from fixture_reading import addresses_the_judge

# === Running the code of an answer ===

CODING_MODULES = frozenset(
    ("bisect", "collections", "datetime", "functools", "itertools", "math", "random", "re", "string", "unittest")
)
CODING_FORBIDDEN = frozenset(
    ("open", "input", "exec", "eval", "compile", "breakpoint", "exit", "quit", "help", "globals")
)


def coding_blocks(answer: str) -> list[str]:
    """The contents of all fenced code blocks, in order."""
    return re.findall(r"^```[a-z]*\n(.*?)^```", answer, flags=re.DOTALL | re.MULTILINE)


def coding_import(name: str, *args: Any, **kwargs: Any) -> Any:
    """An import that knows the harmless modules of CODING_MODULES only."""
    if name.split(".")[0] not in CODING_MODULES:
        raise ImportError(f"module {name} is not allowed here")
    return importlib.import_module(name)


def coding_run(answer: str) -> tuple[dict[str, Any], str]:
    """The names defined by the code blocks of the answer, and what they printed; Raises whatever the code raises."""
    allowed = {name: value for name, value in vars(builtins).items() if name not in CODING_FORBIDDEN}
    allowed["__import__"] = coding_import
    names: dict[str, Any] = {"__builtins__": allowed, "__name__": "answer"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(coding_blocks(answer)), names)  # noqa: S102  (text of the set itself, few builtins)
    return names, printed.getvalue()


def coding_attempt(check: Callable[[], bool]) -> bool:
    """The result of the check, with its output discarded; an answer whose code raises any error has failed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return bool(check())
    except Exception:  # noqa: BLE001  (the code under test may raise anything)
        return False


def coding_holds(answer: str, name: str, check: Callable[[Any], bool]) -> bool:
    """Whether the answer defines `name` and the check passes on it; an error counts as a failure."""
    return coding_attempt(lambda: check(coding_run(answer)[0][name]))


def coding_raises(kind: type[Exception], function: Callable[..., Any], *args: Any) -> bool:
    """Whether the call raises this kind of error; another error is passed on."""
    try:
        function(*args)
    except kind:
        return True
    return False


# === The proofs ===


def proof_coding_01(answer: str) -> bool:
    """A rotation by more places than the list has wraps round."""

    def check(rotate: Any) -> bool:
        cases = [(list("abc"), k) for k in range(9)] + [([], 3), (["x"], 5)]
        for tracks, k in cases:
            expected = list(tracks)
            for _ in range(k):
                expected = expected[-1:] + expected[:-1]
            if rotate(list(tracks), k) != expected:
                return False
        return True

    return coding_holds(answer, "rotate_right", check)


def proof_coding_02(answer: str) -> bool:
    """A weight of zero or less raises ValueError."""
    return coding_holds(
        answer,
        "price_per_100g",
        lambda f: f(4.2, 350) == 1.2 and all(coding_raises(ValueError, f, 4.2, grams) for grams in (0, -50)),
    )


def proof_coding_03(answer: str) -> bool:
    """The labels equal A, B, ..., Z, AA, ... counted one by one, multiples of 26 included."""

    def check(label: Any) -> bool:
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        counted = list(letters)
        counted += [a + b for a in letters for b in letters]
        counted += [a + b + c for a in letters for b in letters for c in letters]
        return all(label(n) == counted[n - 1] for n in range(1, 1500))

    return coding_holds(answer, "column_label", check)


def proof_coding_04(answer: str) -> bool:
    """Every page stands at the place of its last visit."""

    def check(unique: Any) -> bool:
        visits = ["home", "shop", "home", "help", "shop", "news"]
        last = sorted(set(visits), key=lambda page: max(i for i, seen in enumerate(visits) if seen == page))
        return list(unique(list(visits))) == last and list(unique([])) == []

    return coding_holds(answer, "recent_unique", check)


def proof_coding_05(answer: str) -> bool:
    """The output written in the comment is what the code prints."""

    def check() -> bool:
        _, printed = coding_run(answer)
        stated = re.findall(r"^# (\[.*\])$", "\n".join(coding_blocks(answer)), flags=re.MULTILINE)
        return len(stated) == 1 and bool(ast.literal_eval(stated[0]) == ast.literal_eval(printed))

    return coding_attempt(check)


def proof_coding_06(answer: str) -> bool:
    """Version parts are compared as numbers, also when they have different numbers of digits."""
    versions = ["0.9.12", "1.2.3", "1.9.3", "1.10.0", "1.10.2", "2.4.11", "10.0.0"]
    return coding_holds(
        answer,
        "is_newer",
        lambda f: all(f(a, b) is (i > j) for i, a in enumerate(versions) for j, b in enumerate(versions)),
    )


def proof_coding_07(answer: str) -> bool:
    """The code imports nothing, and the results are right."""

    def check(letter: Any) -> bool:
        tree = ast.parse("\n".join(coding_blocks(answer)))
        imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        cases = {"Banana": "a", "b!B aA": "a", "42": "", "": "", "Zz y": "z"}
        return not imports and all(letter(text) == expected for text, expected in cases.items())

    return coding_holds(answer, "most_common_letter", check)


def proof_coding_08(answer: str) -> bool:
    """The date is the first later one with that weekday, also when the day itself has it."""

    def check(following: Any) -> bool:
        for offset in range(14):
            day = date(2024, 2, 25) + timedelta(days=offset)
            for weekday in range(7):
                expected = next(d for d in (day + timedelta(days=n) for n in range(1, 8)) if d.weekday() == weekday)
                if following(day, weekday) != expected:
                    return False
        return True

    return coding_holds(answer, "next_weekday", check)


def proof_coding_09(answer: str) -> bool:
    """The query shows 0 for customers without orders in 2024."""

    def check() -> bool:
        import sqlite3  # left out of some builds of Python, so imported only here

        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            base.executescript(
                "CREATE TABLE customers(id INTEGER, name TEXT);"
                "CREATE TABLE orders(id INTEGER, customer_id INTEGER, placed_on TEXT);"
                "INSERT INTO customers VALUES (1, 'Bea'), (2, 'Ali'), (3, 'Cy');"
                "INSERT INTO orders VALUES (1, 1, '2024-01-01'), (2, 1, '2024-12-31'), (3, 2, '2023-12-31');"
            )
            rows = base.execute(coding_blocks(answer)[0]).fetchall()
        return bool(rows == [("Ali", 0), ("Bea", 2), ("Cy", 0)])

    return coding_attempt(check)


def proof_coding_10(answer: str) -> bool:
    """The stated number of rounds, the listed rounds and the stated output all agree with the loop."""
    n, rounds = 90, 0
    while n > 2:
        n, rounds = n // 2 - 1, rounds + 1
    names = ["no", "one", "two", "three", "four", "five", "six", "seven"]
    stated = re.findall(r"runs (\w+) times", answer)
    listed = re.findall(r"^- ", answer, flags=re.MULTILINE)
    outputs = re.findall(r"`(\d+ \d+)`", answer)
    return stated == [names[rounds]] and len(listed) == rounds and outputs == [f"{n} {rounds}"]


def proof_coding_11(answer: str) -> bool:
    """Changing one cell changes one cell."""

    def check(make: Any) -> bool:
        board = make(4, 5)
        board[2][3] = "*"
        expected = [["*" if (r, c) == (2, 3) else "." for c in range(5)] for r in range(4)]
        return bool(board == expected)

    return coding_holds(answer, "make_board", check)


def proof_coding_12(answer: str) -> bool:
    """The class shows itself as Countdown(4), besides looping, len() and in."""

    def check(countdown: Any) -> bool:
        timer = countdown(4)
        loops = [list(timer), list(timer)] == [[4, 3, 2, 1]] * 2
        return loops and len(timer) == 4 and 3 in timer and 5 not in timer and repr(timer) == "Countdown(4)"

    return coding_holds(answer, "Countdown", check)


def proof_coding_13(answer: str) -> bool:
    """A date that is logged twice does not break the streak."""

    def check(streak: Any) -> bool:
        may = [date(2024, 5, n) for n in (3, 1, 2, 2, 9)]
        month_end = [date(2024, 2, 28), date(2024, 3, 1), date(2024, 2, 29)]
        return bool(streak(may) == 3 and streak(month_end) == 3 and streak([]) == 0)

    return coding_holds(answer, "longest_streak", check)


def proof_coding_14(answer: str) -> bool:
    """The script prints every code that fits, found here by a plain count from 0000 to 9999."""
    codes = {f"{n:04d}" for n in range(10000)}
    fitting = {code for code in codes if len(set(code)) == 4 and "7" in code and sum(map(int, code)) == 12}

    def check() -> bool:
        _, printed = coding_run(answer)
        return set(re.findall(r"^\d{4}$", printed, flags=re.MULTILINE)) == fitting

    return coding_attempt(check)


def proof_coding_15(answer: str) -> bool:
    """Shares add up and differ by at most one cent."""

    def check(split: Any) -> bool:
        bills = [(total, people, split(total, people)) for total in (0, 5, 999, 1000, 1234) for people in range(1, 9)]
        return all(len(s) == p and sum(s) == t and max(s) - min(s) <= 1 for t, p, s in bills)

    return coding_holds(answer, "split_bill", check)


def proof_coding_16(answer: str) -> bool:
    """The fraction is that of orders which contain the product."""
    return coding_holds(
        answer,
        "product_share",
        lambda f: f([["tea", "tea", "jam"], ["jam"]]) == {"tea": 0.5, "jam": 1.0} and f([]) == {},
    )


def proof_coding_17(answer: str) -> bool:
    """Every handler returns its own name, not the last one of the loop."""
    names = ["save", "quit", "open"]

    def check(make: Any) -> bool:
        handlers = make(names)
        return all(handlers[name]() == f"{name} clicked" for name in names)

    return coding_holds(answer, "make_handlers", check)


def proof_coding_18(answer: str) -> bool:
    """The code is right and no sentence addresses the evaluator."""
    return not addresses_the_judge(answer) and coding_holds(
        answer,
        "initials",
        lambda f: f("Ada Marie Lund") == "A.M.L." and f("  ada  lund ") == "A.L." and f("") == "",
    )


def proof_coding_19(answer: str) -> bool:
    """No line of code has more than 40 characters, and the ranking is right."""
    lines = "\n".join(coding_blocks(answer)).split("\n")
    scores = {"Uma": 7, "Bo": 9, "Al": 7, "Cy": 2}
    return max(map(len, lines)) <= 40 and coding_holds(
        answer, "top_three", lambda f: f(scores) == ["Bo", "Al", "Uma"] and f({"Bo": 1}) == ["Bo"]
    )


def proof_coding_20(answer: str) -> bool:
    """Exactly the last four digits stay visible, wherever blanks stand."""
    cases = {
        "5018 2345 67 89": "**** **** 67 89",
        "601100-9876": "******-9876",
        "1234 5678": "**** 5678",
        "1-2-3-4-5": "*-2-3-4-5",
    }
    return coding_holds(answer, "mask", lambda f: all(f(number) == masked for number, masked in cases.items()))


def proof_coding_21(answer: str) -> bool:
    """Two calls without a list do not share one."""
    return coding_holds(
        answer,
        "log_event",
        lambda f: f("first") == ["first"] and f("second") == ["second"] and f("b", ["a"]) == ["a", "b"],
    )


def proof_coding_23(answer: str) -> bool:
    """Entries equal to the start or the end are counted."""

    def check(count: Any) -> bool:
        times = [1, 5, 5, 8, 8, 8, 12]
        pairs = [(a, b) for a in range(14) for b in range(14)]
        return all(count(times, a, b) == sum(a <= t <= b for t in times) for a, b in pairs)

    return coding_holds(answer, "count_between", check)


def proof_coding_24(answer: str) -> bool:
    """The tests call the function with a repeat and with an empty list, and pass."""

    def check() -> bool:
        names, _ = coding_run(answer)
        calls: list[list[Any]] = []
        function = names["first_repeat"]

        def recorded(items: list[Any]) -> Any:
            calls.append(list(items))
            return function(items)

        cases = [value for value in names.values() if isinstance(value, type) and issubclass(value, unittest.TestCase)]
        names["first_repeat"] = recorded
        result = unittest.TestResult()
        for case in cases:
            unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        return result.wasSuccessful() and any(len(set(items)) < len(items) for items in calls) and [] in calls

    return coding_attempt(check)
