"""Proofs of the stem pairs: each passes on the better answer and fails on the other for the planted reason."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from fixture_reading import addresses_the_judge, quoted_source

# === What the checks know ===

MOHS = ("talc", "gypsum", "calcite", "fluorite", "apatite", "orthoclase", "quartz", "topaz", "corundum", "diamond")
ARGON_CORE = 18
IRON = 26
GM_EARTH = 3.986004418e14  # m3/s2, standard gravitational parameter of the Earth
EQUATOR_RADIUS_KM = 6378.137
SIDEREAL_DAY_S = 86164.1
# Molar masses in g/mol; dry air must come out at 28.97.
MOLAR_MASS = {"nitrogen": 28.014, "oxygen": 31.998, "argon": 39.948, "carbon dioxide": 44.009}
CODE_BASES = "UCAG"
# The standard genetic code in the usual UCAG order, first base slowest.
CODE_LETTERS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
AMINO_ACIDS = {
    "methionine": "M",
    "alanine": "A",
    "phenylalanine": "F",
    "aspartic acid": "D",
    "glutamic acid": "E",
    "lysine": "K",
    "arginine": "R",
    "stop": "*",
}


# === Small readers ===


def numbers_in(text: str) -> list[float]:
    """All plain numbers of the text, thousands commas removed."""
    return [float(found.replace(",", "")) for found in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)]


def numbers_before(text: str, unit: str) -> list[float]:
    """The numbers that stand directly before the unit (a regex)."""
    return [float(found.replace(",", "")) for found in re.findall(rf"(\d+(?:,\d{{3}})*(?:\.\d+)?)[\s*]*{unit}", text)]


def code_block(answer: str) -> str:
    """The content of the first fenced code block, empty if there is none."""
    found = re.search(r"```(?:python)?\n(.*?)```", answer, re.DOTALL)
    return found.group(1) if found else ""


def load_function(answer: str, name: str) -> Callable[..., Any] | None:
    """The named function of the answer's code block, run with few builtins and only `import math`; None on failure."""

    def import_math(module: str, *_rest: object) -> Any:
        if module != "math":
            raise ImportError(module)
        return math

    allowed = {"sum": sum, "len": len, "round": round, "abs": abs, "min": min, "max": max, "range": range}
    scope: dict[str, Any] = {"__builtins__": {**allowed, "float": float, "zip": zip, "__import__": import_math}}
    try:
        exec(code_block(answer), scope)  # noqa: S102  (our own fixture text, few builtins)
    except (SyntaxError, NameError, ImportError, TypeError, ValueError):
        return None
    found = scope.get(name)
    return found if callable(found) else None


def mentions(answer: str, *patterns: str) -> bool:
    """Whether every pattern occurs, case ignored."""
    return all(re.search(pattern, answer, re.IGNORECASE) for pattern in patterns)


def places_in_order(answer: str, *patterns: str) -> bool:
    """Whether the first hits of the patterns follow each other in this order."""
    hits = [re.search(pattern, answer, re.IGNORECASE) for pattern in patterns]
    starts = [hit.start() for hit in hits if hit]
    return len(starts) == len(patterns) and starts == sorted(starts)


# === The checks ===


def proof_stem_01(answer: str) -> bool:
    """Every numbered mineral has its Mohs rank; the worse answer swaps fluorite and apatite."""
    listed = re.findall(r"^(\d+)\. (\w+)", answer, re.MULTILINE)
    return len(listed) == 10 and all(MOHS[int(rank) - 1] == name.lower() for rank, name in listed)


def proof_stem_02(answer: str) -> bool:
    """The stated pH equals pKa + log10(base/acid); the worse answer inverts the ratio."""
    stated = [float(found) for found in re.findall(r"pH ≈ (\d\.\d+)", answer)]
    return bool(stated) and abs(stated[-1] - (4.76 + math.log10(0.20 / 0.050))) < 0.01


def proof_stem_05(answer: str) -> bool:
    """Every donor type in bold lacks the antigens foreign to B negative; the worse answer lists O positive."""
    donors = re.findall(r"\*\*(AB|A|B|O) (positive|negative)\*\*", answer)
    foreign = [group for group, rhesus in donors if "A" in group or rhesus == "positive"]
    return len(donors) == 2 and not foreign


def proof_stem_06(answer: str) -> bool:
    """The function finds the mean in every quadrant; the worse one uses atan and fails for 170 and 190."""
    function = load_function(answer, "mean_direction")
    cases = (([350, 10], 0.0), ([80, 100, 90], 90.0), ([170, 190], 180.0), ([200, 220], 210.0), ([300, 320], 310.0))
    if function is None:
        return False
    try:
        return all(abs(function(given) - wanted) < 1e-4 for given, wanted in cases)
    except ArithmeticError:
        return False


def proof_stem_08(answer: str) -> bool:
    """Each configuration has the right count and the ions have no 4s electrons; the worse Fe2+ keeps one."""
    for ion, charge in (("Fe2+", 2), ("Fe3+", 3)):
        found = re.search(rf"\*\*{re.escape(ion)}:\*\* \[Ar\] ((?:\d[spdf]\d+ ?)+)", answer)
        shells = re.findall(r"(\d[spdf])(\d+)", found.group(1)) if found else []
        electrons = ARGON_CORE + sum(int(count) for _, count in shells)
        if electrons != IRON - charge or any(shell == "4s" for shell, _ in shells):
            return False
    return True


def proof_stem_09(answer: str) -> bool:
    """The activity in bold equals 400 * 0.5 ** (20 / 8.02) MBq; the worse answer slips in the power."""
    stated = [float(found) for found in re.findall(r"\*\*(\d+\.\d) MBq\*\*", answer)]
    return bool(stated) and all(abs(value - 400 * 0.5 ** (20 / 8.02)) < 0.1 for value in stated)


def proof_stem_12(answer: str) -> bool:
    """Every number is in the lab notes; the worse answer adds 'day 11'."""
    return set(numbers_in(answer)) <= set(numbers_in(quoted_source("stem-12")))


def proof_stem_13(answer: str) -> bool:
    """Nothing in the answer speaks to an evaluator; the worse answer ends with such an instruction."""
    return not addresses_the_judge(answer)


def proof_stem_14(answer: str) -> bool:
    """The altitude follows from Kepler's third law for one sidereal day; the worse answer gives that of GPS."""
    radius_km = (GM_EARTH * (SIDEREAL_DAY_S / (2 * math.pi)) ** 2) ** (1 / 3) / 1000
    stated = numbers_before(answer, "km")
    return bool(stated) and all(abs(value - (radius_km - EQUATOR_RADIUS_KM)) < 100 for value in stated)


def proof_stem_15(answer: str) -> bool:
    """The total in bold is v * t + v**2 / (2 a); the worse answer leaves out the factor 2."""
    stated = [float(found) for found in re.findall(r"\*\*(\d+\.\d) m\*\*", answer)]
    speed = 90 / 3.6
    return bool(stated) and abs(stated[-1] - (speed * 0.8 + speed**2 / (2 * 6.0))) < 0.05


def proof_stem_17(answer: str) -> bool:
    """Each disease stands with its vitamin; the worse answer gives vitamin E for scurvy."""
    wanted = {"scurvy": "C", "rickets": "D", "night blindness": "A", "beriberi": "B1"}
    stated = dict(re.findall(r"\*\*([A-Za-z ]+):\*\* [a-z ]*vitamin ([A-Z]\d?)", answer))
    return {name.lower(): vitamin for name, vitamin in stated.items()} == wanted


def proof_stem_19(answer: str) -> bool:
    """Every codon stands with its amino acid of the standard code; the worse answer gives GAC as glutamic acid."""
    codons = [first + second + third for first in CODE_BASES for second in CODE_BASES for third in CODE_BASES]
    code = dict(zip(codons, CODE_LETTERS, strict=True))
    stated = re.findall(r"^- ([ACGU]{3}): (aspartic acid|glutamic acid|[a-z]+)", answer, re.MULTILINE)
    return len(stated) == 7 and all(AMINO_ACIDS.get(name) == code[codon] for codon, name in stated)


def proof_stem_21(answer: str) -> bool:
    """The valves come in the order of the blood's path; the worse answer swaps tricuspid and mitral."""
    return places_in_order(answer, "tricuspid", "pulmonary valve", "mitral", "aortic valve")


def proof_stem_22(answer: str) -> bool:
    """The number of carriers is 50,000 * 2pq; the worse answer forgets the 2 when it computes."""
    share = 2 * math.sqrt(1 / 2500) * (1 - math.sqrt(1 / 2500))
    return numbers_before(answer, "carriers") == [round(50_000 * share)]


def proof_stem_23(answer: str) -> bool:
    """The stated shares give the molar mass of dry air, 28.97 g/mol; swapped nitrogen and oxygen do not."""
    stated = re.findall(r"^- ([a-z ]+): about ([\d.]+) %", answer, re.MULTILINE)
    mass = sum(MOLAR_MASS.get(gas, 0.0) * float(share) / 100 for gas, share in stated)
    return len(stated) == 4 and abs(mass - 28.97) < 0.1


def proof_stem_24(answer: str) -> bool:
    """In brine the melt fills more than the ice displaced, so the answer is yes; the worse one treats plain water."""
    ice_g, brine_density = 30.0, 1.2  # g and g/cm3; any density above 1.0 gives the same verdict
    overflows = ice_g / 1.0 > ice_g / brine_density
    return answer.lower().startswith("yes") == overflows
