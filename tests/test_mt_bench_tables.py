"""MT-Bench's own tables and the label probe's, against counts made by hand and slow definitions."""

from __future__ import annotations

import itertools
import os
import random
import sys
import unittest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made
from rooms import room

room("agreement")
tables = made.module(os.path.join(made.ROOT, "evals", "mt-bench", "tables.py"), "mtbench_tables")
labels = made.module(os.path.join(made.ROOT, "evals", "contamination-labels", "tables.py"), "label_tables")

SETTINGS = {"seed": 1, "resamples": 50, "level": 0.95}
PAIRS = (("ash", "birch"), ("ash", "oak"), ("birch", "oak"))


def pair(key: str, votes: str, models: tuple[str, str] = PAIRS[0], cluster: str = "q1") -> dict[str, Any]:
    """votes: one letter per expert, A, B or = for a tie; lower case for an author."""
    names = {"A": "A", "B": "B", "=": "equal"}
    voters = [("author" if v.islower() else "expert", names[v.upper()]) for v in votes]
    labels = [label for _, label in voters]
    best = sorted(set(labels), key=labels.count)[::-1]
    leads = len(best) == 1 or labels.count(best[0]) > labels.count(best[1])
    return {
        "item_id": key,
        "answer_a": "long text",
        "answer_b": "text",
        "gold": best[0] if leads else None,
        "cluster": cluster,
        "category": "stem",
        "turn": 1,
        "model_a": models[0],
        "model_b": models[1],
        "votes": [{"judge": f"{kind}_{n}", "label": label} for n, (kind, label) in enumerate(voters)],
    }


def row(key: str, decision: str, repeat: int = 1, same: bool = True) -> dict[str, Any]:
    steady = {"position_consistency": {"score": int(same and decision != "invalid")}}
    return {"arm": "j", "item_id": key, "repeat": repeat, "decision": decision, "secondary": steady}


def made_up(n: int, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rng = random.Random(seed)
    items = [
        pair(f"i{k}", "".join(rng.choice("ABab=") for _ in range(rng.randint(1, 5))), rng.choice(PAIRS), f"q{k % 7}")
        for k in range(n)
    ]
    return items, [row(item["item_id"], rng.choice(("A", "B", "equal", "invalid"))) for item in items]


def figures(items: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Any:
    return tables.tables(items, rows, {}, SETTINGS)["figures"]


class Setups(unittest.TestCase):
    def slow(self, items: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
        """S1 and S2 by their definition, vote by vote."""
        decided = {r["item_id"]: r["decision"] for r in rows}
        counts = {(setup, who): [0, 0] for setup in ("S1", "S2") for who in ("judge", "people")}
        for item in items:
            experts = [v["label"] for v in item["votes"] if v["judge"].startswith("expert")]
            couples = [("judge", decided[item["item_id"]], label) for label in experts]
            couples += [("people", first, second) for first, second in itertools.combinations(experts, 2)]
            for who, first, second in couples:
                for setup in ("S1",) if "equal" in (first, second) else ("S1", "S2"):
                    counts[setup, who][0] += first == second
                    counts[setup, who][1] += 1
        return {key: tuple(value) for key, value in counts.items()}

    def test_counts_equal_the_definition(self) -> None:
        for seed in range(5):
            items, rows = made_up(40, seed)
            found = figures(items, rows)["setups"]["j"]
            got = {(s, w): (found[s][w]["k"], found[s][w]["n"]) for s in ("S1", "S2") for w in ("judge", "people")}
            self.assertEqual(got, self.slow(items, rows))

    def test_an_invalid_decision_stays_in_both_denominators(self) -> None:
        found = figures([pair("i", "AA")], [row("i", "invalid")])["setups"]["j"]
        self.assertEqual([(found[s]["judge"]["k"], found[s]["judge"]["n"]) for s in ("S1", "S2")], [(0, 2), (0, 2)])

    def test_the_share_that_s2_keeps_is_given(self) -> None:
        found = figures([pair("i", "A="), pair("k", "B", cluster="q2")], [row("i", "A"), row("k", "B")])["setups"]["j"]
        self.assertAlmostEqual(found["S2"]["kept"], 2 / 3)


class EveryVote(unittest.TestCase):
    def test_authors_and_ties_count_and_both_models_get_the_pair(self) -> None:
        items = [pair("i", "Aa="), pair("k", "BB", ("ash", "oak"), "q2")]
        found = figures(items, [row("i", "A"), row("k", "A")])["votes"]
        shown = {
            group: (part["arms"]["j"]["k"], part["arms"]["j"]["n"], part["pairs"]) for group, part in found.items()
        }
        self.assertEqual(shown["all"], (2, 5, 2))
        self.assertEqual(shown["model=ash"], (2, 5, 2))
        self.assertEqual(shown["model=oak"], (0, 2, 1))
        self.assertEqual(shown["model_pair=ash vs birch"], (2, 3, 1))
        self.assertEqual((found["all"]["people"]["k"], found["all"]["people"]["n"]), (2, 4))

    def test_the_majority_of_repeats_is_the_decision(self) -> None:
        rows = [row("i", "A", 1), row("i", "B", 2), row("i", "B", 3)]
        self.assertEqual(figures([pair("i", "B")], rows)["votes"]["all"]["arms"]["j"]["k"], 1)


class When(unittest.TestCase):
    CASES = {  # votes, decision, whether both orders say it -> kinds that are 1, groups beside "all"
        "right": ("A", "A", True, "right", "one vote", "longer answer", "same winner in both"),
        "reversed": ("BB", "A", True, "reversed", "all of one mind", "shorter answer", "same winner in both"),
        "missed": ("ABB", "equal", False, "missed", "divided", "shorter answer", "changes with the order"),
        "invented": ("==", "B", True, "invented", "all of one mind", "a tie", "same winner in both"),
        "tie": ("=", "equal", True, "right", "one vote", "a tie", "a tie in both orders"),
        "invalid": ("AA", "invalid", False, None, "all of one mind", "longer answer", "without a verdict"),
    }

    def test_each_decision_is_of_one_kind_and_counted_in_its_groups(self) -> None:
        for key, (votes, decision, same, kind, *groups) in self.CASES.items():
            with self.subTest(key):
                found = figures([pair(key, votes)], [row(key, decision, same=same)])["when"]["j"]
                self.assertEqual(len(found), 1 + len(groups))
                for part in ("all", *groups):
                    shown = next(shown for group, shown in found.items() if group.endswith(part) or part in group)
                    self.assertEqual(
                        {name: shown[name]["k"] for name in tables.KINDS if shown[name]["k"]}, {kind: 1} if kind else {}
                    )
                    self.assertEqual(shown["right"]["n"], 1)

    def test_a_wrong_winner_is_out_of_pairs_with_two_winners(self) -> None:
        items = [pair(key, votes) for key, (votes, *_) in self.CASES.items()]
        rows = [row(key, given[1], same=given[2]) for key, given in self.CASES.items()]
        shown = figures(items, rows)["when"]["j"]["all"]
        self.assertEqual((shown["wrong_winner"]["k"], shown["wrong_winner"]["n"], shown["right"]["n"]), (1, 2, 6))

    def test_a_pair_without_gold_is_not_counted(self) -> None:
        self.assertEqual(figures([pair("i", "AB")], [row("i", "A")])["when"]["j"], {})

    def test_a_pair_asked_twice_shows_how_steady_the_judge_is(self) -> None:
        items = [pair("i", "A"), pair("k", "A", cluster="q2"), pair("l", "A", cluster="q3")]
        rows = [row("i", "A"), row("i", "A", 2), row("k", "A"), row("k", "B", 2), row("l", "A")]
        again = figures(items, rows)["again"]["j"]
        self.assertEqual((again["pairs"], again["same"]["k"], again["same"]["n"]), (2, 1, 2))
        self.assertEqual(figures(items, [row("i", "A")])["again"], {})

    def test_a_judge_that_says_what_people_say_is_no_better_than_they_are(self) -> None:
        beyond = figures([pair("i", "AAB")], [row("i", "A")])["votes"]["all"]["beyond"]["j"]
        self.assertEqual((beyond["k"], beyond["n"]), (1, 1))  # only the B voter's fellows have a plurality: A
        self.assertEqual(figures([pair("i", "AA")], [row("i", "A")])["votes"]["all"]["beyond"]["j"]["k"], 0)


class Sided(unittest.TestCase):
    def test_a_wrong_winner_lifts_one_model_and_drops_the_other(self) -> None:
        items = [pair("i", "AA"), pair("k", "BB", cluster="q2"), pair("l", "==", cluster="q3")]
        rows = [row("i", "B"), row("k", "B"), row("l", "A")]
        found = figures(items, rows)["sided"]["j"]
        counted = {m: {n: (s["k"], s["n"]) for n, s in shown.items()} for m, shown in found.items()}
        self.assertEqual(counted["ash"], {"lifted": (0, 1), "dropped": (1, 1)})
        self.assertEqual(counted["birch"], {"lifted": (1, 1), "dropped": (0, 1)})


class Favour(unittest.TestCase):
    def test_win_rates_equal_the_definition(self) -> None:
        items, rows = made_up(60, 9)
        decided = {r["item_id"]: r["decision"] for r in rows}
        worth = {"A": 1.0, "equal": 0.5, "B": 0.0}
        expected: dict[str, list[tuple[float, float]]] = {}
        for item in items:
            if decided[item["item_id"]] == "invalid":
                continue
            people = sum(worth[v["label"]] for v in item["votes"]) / len(item["votes"])
            judge = worth[decided[item["item_id"]]]
            expected.setdefault(item["model_a"], []).append((people, judge))
            expected.setdefault(item["model_b"], []).append((1 - people, 1 - judge))
        found = figures(items, rows)["favour"]["j"]["models"]
        self.assertEqual(set(found), set(expected))
        for model, pairs in expected.items():
            self.assertEqual(found[model]["pairs"], len(pairs))
            for place, name in enumerate(("people", "judge")):
                self.assertAlmostEqual(found[model][name], sum(p[place] for p in pairs) / len(pairs))
            difference = found[model]["judge"] - found[model]["people"]
            self.assertAlmostEqual(found[model]["difference"]["value"], difference)


class Contradictions(unittest.TestCase):
    def test_only_a_decisive_judge_against_unanimous_people_is_listed(self) -> None:
        votes = {"plain": "AA", "more": "BBb", "tie": "==", "split": "AB", "single": "A", "agree": "AA", "even": "BB"}
        decided = {"plain": "B", "more": "A", "tie": "A", "split": "A", "single": "B", "agree": "A", "even": "equal"}
        items = [pair(key, given) for key, given in votes.items()]
        found = figures(items, [row(key, decision) for key, decision in decided.items()])["contradictions"]["j"]
        self.assertEqual((found["unanimous"], found["contradicted"]), (4, 2))
        self.assertEqual([entry["item_id"] for entry in found["items"]], ["more", "plain"])

    def test_rows_with_a_failed_reply_decide_nothing(self) -> None:
        result = tables.tables([pair("i", "AA")], [{"arm": "j", "item_id": "i", "repeat": 1}], {}, SETTINGS)
        self.assertEqual(result["figures"]["contradictions"], {})


class LabelProbe(unittest.TestCase):
    def item(self, n: int, condition: str, gold: str) -> dict[str, Any]:
        return {"item_id": f"{condition}-{n}", "pair": str(n), "condition": condition, "gold": gold, "cluster": f"q{n}"}

    def test_conditions_are_counted_apart_and_compared_pair_by_pair(self) -> None:
        golds = "AABBAB"
        items = [self.item(n, c, gold) for c in ("named", "names", "masked") for n, gold in enumerate(golds)]
        right = {"named": "AABBAA", "names": "AAAAAA", "masked": "======"}
        rows = [
            {"arm": "j", "item_id": f"{c}-{n}", "decision": "equal" if mark == "=" else mark}
            for c, marks in right.items()
            for n, mark in enumerate(marks)
        ]
        found = labels.tables(items, rows, {}, SETTINGS)["figures"]["j"]
        counted = {c: (probe["k"], probe["n"]) for c, probe in found["conditions"].items()}
        self.assertEqual(counted, {"named": (5, 6), "names": (3, 6), "masked": (0, 6)})
        added = found["named_minus_names"]
        self.assertEqual((added["better"], added["worse"], added["pairs"]), (2, 0, 6))
        self.assertAlmostEqual(added["p"], 0.5)

    def test_without_a_guess_nothing_is_claimed(self) -> None:
        found = labels.tables(
            [self.item(1, "named", "A")], [{"arm": "j", "item_id": "x", "decision": "A"}], {}, SETTINGS
        )
        self.assertEqual(found["figures"]["j"]["conditions"]["named"]["reason"], "no_items")
        self.assertIsNone(found["figures"]["j"]["named_minus_names"]["p"])


if __name__ == "__main__":
    unittest.main()
