"""Check a certificate of separability against a CSV: python check_certificate.py CERTIFICATE.json DATA.csv [--label COLUMN]

Exact, by the standard library alone. A pair has a vector a: x̃ = (x, 1), or x without a bias, signed by its class; for K > 2
classes x̃ in the block of its own class, −x̃ in that of a rival. Whole numbers are read exactly, others as the float64 they
denote; the label is the last column unless named. w is full or a sum Σλa. Exit status: 0 valid, 1 not, 2 unreadable.
  separable    ⟨w,a⟩ ≥ least > 0 everywhere, lower ≤ least/‖w‖, ‖Σλa‖/Σλ ≤ upper, bound = floor of R²/γ² (2R²/γ² for K > 2)
  inseparable  λ > 0 and Σλa = 0: no w is positive on all of these; without a bias, whatever a tie means
  touching     the same on the pairs that a tie favours; and a w positive on the others, negative nowhere
  quasi-complete: ⟨w,a⟩ ≥ 0 everywhere, not all 0;  overlap: λ > 0 and Σλa = 0 on rows that span all rows
"""

import argparse
import csv
import json
import sys
from fractions import Fraction as Q
from math import lcm


def demand(holds, what):
    if not holds:
        raise ArithmeticError(what)


def value(text):
    try:
        return Q(int(text) if text.strip().lstrip("+-").isdecimal() else float(text))
    except (ValueError, OverflowError):
        return text


def rational(text):  # "p" or "p/q", long ones hexadecimal; no exponents, as a short one stands for a huge number
    return Q(*(int(part, 0) for part in text.split("/")))


def whole(numbers):
    scale = lcm(1, *(v.denominator for v in numbers))
    return [v.numerator * (scale // v.denominator) for v in numbers], scale


class Data:
    def __init__(self, path, label, cert):
        table = [row for row in csv.reader(open(path, newline="", encoding="utf-8-sig")) if row]
        column = table[0].index(label) if label in table[0] else int(label or -1) % len(table[0])
        titled = all(isinstance(value(v), str) for j, v in enumerate(table[0]) if j != column)
        read = value if all(type(c) in (int, float) for c in cert["classes"]) else str
        places = {read(str(c)): k for k, c in enumerate(cert["classes"])}
        self.X, self.y, self.K, self.m = [], [], len(places), len(table[0]) - 1 + cert["bias"]
        for line, row in list(enumerate(table, 1))[titled:]:
            try:
                self.y.append(places[read(row.pop(column))])
                self.X.append(whole([value(v) for v in row] + [Q(1)] * cert["bias"]))
            except (LookupError, AttributeError) as problem:  # a text has no denominator
                raise OSError(f"{path}, line {line}: a value is no number, or {problem!r} is no label") from None
        names, titles = cert["feature_names"], table[0][:column] + table[0][column + 1 :]
        named = names is None or names == (titles if titled else [str(name) for name, _ in zip(names, titles, strict=True)])
        fine = named and repr([len(self.X), self.m - cert["bias"]]) == repr([cert["examples"], cert["features"]])
        demand(fine and all(len(x) == self.m for x, _ in self.X), "it is for other data, or the rows differ in length")

    def direction(self, given):  # w as one list
        if isinstance(given, dict):
            return self.combination(given)[0]
        demand([len(w) for w in given] == [self.m] * (1 if self.K == 2 else self.K), "a direction has the wrong shape")
        return [rational(v) for w in given for v in w]

    def vector(self, i, rival):
        demand(type(i) is type(rival) is int and rival != self.y[i] and 0 <= rival < self.K, f"row {i} has no rival {rival}")
        return [v * ((k == self.y[i]) - (k == rival)) for k in range(self.K)[self.K == 2 :] for v in self.X[i][0]]

    def leads(self, w):  # (row, rival, ⟨w,a⟩) for every pair
        (w, scale), leads = whole(w), []
        for i, (x, cleared) in enumerate(self.X):
            parts = (w[k : k + self.m] for k in range(0, len(w), self.m))
            scores = [0] * (self.K == 2) + [sum(a * b for a, b in zip(part, x) if b) for part in parts]
            leads += [(i, r, Q(scores[self.y[i]] - s, cleared * scale)) for r, s in enumerate(scores) if r != self.y[i]]
        return leads

    def combination(self, part):  # Σλa and Σλ
        weights, pairs = [rational(v) for v in part["weights"]], list(zip(part["rows"], part["rivals"], strict=True))
        fine = len(part) == 3 and len(set(pairs)) == len(weights) > 0 and all(0 <= i < len(self.X) for i, _ in pairs)
        demand(fine and min(weights) > 0, "weights must be positive, one for each pair, on rows of the data")
        lam, scale = whole([w / self.X[i][1] for w, (i, _) in zip(weights, pairs)])
        columns = zip(*(self.vector(*pair) for pair in pairs))
        return [Q(sum(a * b for a, b in zip(lam, c) if b), scale) for c in columns], sum(weights)

    def margin(self, part, width):
        least, w = rational(part["least"]), self.direction(part["direction"])
        square = sum(v * v for j, v in enumerate(w) if j % self.m < width)
        demand(least > 0 and min(lead for *_, lead in self.leads(w)) >= least, "a lead is below the least")
        ordered = len(part) == 5 and bool not in map(type, part.values()) and 0 <= part["lower"] <= part["upper"] < 2**1024
        fine = ordered and Q(part["lower"]) ** 2 * square <= least**2 and (width == self.m or self.K == 2)
        demand(fine, "the lower margin is too high, or K > 2 have a geometric one")
        total, weight = self.combination(part["weights"])
        short = sum(v * v for v in total[: None if self.K > 2 else width]) <= (Q(part["upper"]) * weight) ** 2
        demand(short and (width == self.m or total[-1] == 0), "the upper margin is too low, or its weights do not balance")
        return least**2 / square


def rank(rows, prime=2**61 - 31):  # modulo a prime, which is never above the true one; modulo 2⁶¹ − 1, 2⁶¹ would be 1
    count = 0
    while rows := [row for row in rows if any(v % prime for v in row)]:
        pivot, count = rows.pop(), count + 1
        j = next(j for j, v in enumerate(pivot) if v % prime)
        inverse = pow(pivot[j], -1, prime)
        rows = [[(a - row[j] * inverse * b) % prime for a, b in zip(row, pivot)] for row in rows]
    return count


def check(cert, data):
    verdict, kind, ties, radius = cert["verdict"], cert["separation"], cert["ties"], rational(cert["radius_squared"])
    fine = [cert["format"], type(cert["bias"]), type(cert["classes"])] == ["separatrix certificate 1", bool, list]
    demand(fine and all(a < b for a, b in zip(cert["classes"], cert["classes"][1:])), "another format, or unsorted classes")
    unproven = ["ties", "witness"] if verdict == "separable" else ["margin", "geometric_margin", "mistake_bound"]
    unproven += ["spanning"] * (kind != "overlap") + ["direction"] * (kind in (None, "overlap"))
    silent = len(cert) == 17 and isinstance(cert["equations"], list) and (kind == "overlap" or not cert["equations"])
    demand(silent and all(cert[name] is None for name in unproven), "a claim is not proven")
    top = max(Q(sum(v * v for v in x), c * c) for x, c in data.X)
    demand(top <= radius <= top * (1 + Q(1, 10**9)), "the radius is not the largest norm")
    kinds = {"separable": ["complete"], "touching": ["quasi-complete"], "inseparable": [None, "quasi-complete", "overlap"]}
    demand(kind in kinds.get(verdict, []), f"{verdict!r} with separation {kind!r} is not proven")
    if verdict == "separable":
        bound = radius * (1 if data.K == 2 else 2) // data.margin(cert["margin"], data.m)
        most = bound if isinstance(cert["direction"], list) else bound * Q(102, 100) + 1  # a sum's norm is rounded up
        same = cert["direction"] == cert["margin"]["direction"]
        demand(same and bound <= rational(str(cert["mistake_bound"])) <= most, "not this w's bound")
        return cert["geometric_margin"] is None or data.margin(cert["geometric_margin"], data.m - cert["bias"])
    right = {"+1": lambda i, r: data.y[i] == 1, "-1": lambda i, r: data.y[i] == 0, "first": lambda i, r: r > data.y[i]}
    demand(not any(data.combination(cert["witness"])[0]), "the witness does not add up to 0")
    pairs = list(zip(cert["witness"]["rows"], cert["witness"]["rivals"]))
    sided = [t for t in (("+1", "-1") if data.K == 2 else ("first",)) if all(right[t](*pair) for pair in pairs)]
    demand((sided == [ties]) if verdict == "touching" else (ties is None and not sided), "the witness is on the wrong side")
    if kind == "quasi-complete":
        leads = data.leads(data.direction(cert["direction"]))
        wrong = any(lead < 0 or (verdict == "touching" and lead == 0 and not right[ties](i, r)) for i, r, lead in leads)
        demand(not wrong and any(lead for *_, lead in leads), "w has a wrong lead, or all are 0")
    if kind == "overlap":
        demand(not any(data.combination(cert["spanning"])[0]), "the spanning witness does not add up to 0")
        equations = [whole([rational(v) for v in equation])[0] for equation in cert["equations"]]
        zero = not any(sum(a * b for a, b in zip(e, x, strict=True)) for e in equations for x, _ in data.X)
        demand(zero and rank(equations) == len(equations), "an equation fails, or follows from the others")
        spanned = rank([data.vector(*pair) for pair in zip(cert["spanning"]["rows"], cert["spanning"]["rivals"])])
        demand(spanned >= (data.K - 1) * (data.m - len(equations)), "the spanning witness does not span all rows")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("certificate", "data", "--label"):
        parser.add_argument(name)
    options, status = parser.parse_args(), 0
    try:
        cert = json.loads(open(options.certificate, "rb").read())
        check(cert, Data(options.data, options.label, cert))
        message = f"VALID: {cert['examples']} examples, {cert['verdict']}; separation: {cert['separation'] or 'not claimed'}"
    except ArithmeticError as problem:
        status, message = 1, f"NOT VALID: {problem}"
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, csv.Error) as problem:
        status, message = 2, f"cannot be read: {problem!s:.200}"
    print(message, file=sys.stderr if status == 2 else sys.stdout)
    sys.exit(status)
