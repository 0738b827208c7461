#!/usr/bin/env python3
"""Placement derivation for one operation on one mesh axis: the second implementation, written from
its written specification alone, to be compared with the first: docs/placements.md tells the same rule.

    derive.py < cases.jsonl       one JSON object per line in, one per line out
    derive.py --explain           adds "rule": 1..5, the highest numbered rule used; 6 is a refusal
    derive.py --self-test         cases worked out by hand from the text of the rule

in:   {"op": "matmul", "ints": [1], "operands": [{"shape": [4, 6], "kind": "activation", "placement": "S1"}, ...]}
out:  {"to": ["S1", "S0"], "results": ["P"]}  or  {"refused": true}
"to" is the placement with which each operand enters the operation, after all of its moves (P -> I -> B reads "B"). Whole data
counts as what the row asks and is not retyped for it: where the row says I or B, "to" is how it lies, and I where it was P.
"results" is what the row gives, before rule 7 completes the results of a region. Bad shapes are an error, not a refusal.

How each sentence is read where it left a choice
------------------------------------------------
Rows
 R1  Every operation has the row (B, ..., B) -> B, also attention, whose table does not print it.
 R2  A row that splits an extent of 1 is no row: no axis of more than one rank divides it. Divisibility by the size of the
     axis is otherwise not looked at ("no mesh").
 R3  Rows with communication of their own are derived: softmax over the split dimension, a norm over it, max over it
     (-> I), cross entropy over a split vocabulary (-> I), attention (B, S(s), S(s)) -> P. Attention all S(s) is not: it
     is refused before any rule, also where rule 5 would gather keys and values beside a query that is a parameter.
 R4  Attention (S(h), S(h), S(h)) is a row also with grouped queries, unless K or V has one head (R2).
 R5  Reshape: S(d) -> S(e) where as many elements lie before d as before e and some axis size divides both extents
     (gcd > 1). This is merge, split, both past extents of 1, and a merge followed by a split ([6, 4] -> [4, 6], S0 -> S0).
 R6  Slice: the dimension named in ints counts as touched, even when the slice takes all of it.
 R7  where: (mask B, P, P) -> P. A pending mask is in no row. Division: (P, B) -> P only.
 R8  Norm: (B, P) -> P, and (B, P, P) -> P with gain and shift both pending, are rows and are derived.
Kinds
 K1  A constant is whole data in rules 1 to 3, and a parameter wherever a rule says parameter (3, 5): an Invariant
     constant joins a pending sum, a split constant is a "split parameter", a constant makes rule 5 apply.
 K2  Data that is no constant is never a parameter: it never joins a pending sum.
Rule 1
 a   "I or whole data": each operand is I, or is data and I or B. A Broadcast parameter or activation: not this rule.
Rule 2
 a   "B, else its slice": where several rows fit, the one that slices the fewest operands; then the first of the table.
 b   Whole data never becomes P by this rule.
Rule 3
 a   "An I becomes B where a row then fits": any number of them at once, whole data being as in rule 2.
 b   "Else ... sliced": likewise any number at once, with I -> B of the others; the row as in 2a. Rule 3a is tried first.
 c   "A whole operand is sliced": an I or a B (as the bracket says), of an activation or parameter as well as of data.
 d   "A parameter where it acts element by element": as an operand of add, subtract, multiply, divide, where,
     concatenate, or as gain or shift of a norm; not as x of a norm.
 e   "Where a split parameter asks": the row asks it and at least one operand of kind parameter is split.
 f   "Joins it, I -> P": an Invariant only; a Broadcast parameter or constant does not join (rule 4 then).
 g   "Is added": a term of add or subtract, a branch of where, a part of concatenate, a shift.
     "Multiplies": a factor, a divisor, a gain. An operation that is not element by element has neither.
 h   Beside a pending sum nothing is sliced, and several parameters may join at once.
Rule 4
 a   "That a row asks of it beside the operands that are already split": the rows that all operands may enter by rules 2
     and 3 once the pending ones have gone where the row asks; of these the one that asks S of most of the pending
     operands. All pending operands follow that one row. No operand split, or no such row: to I.
 b   "Again from 1": the completed operands are then operands like any other (so P -> I -> B by rule 3).
Rule 5
 a   Applies only where at least one operand is a parameter; no parameter moves by being gathered, a split one included.
 b   "What is split beside it": all split operands that are no parameters, data too, not only those in the way.
 c   "To B beside a split or Broadcast parameter": if any parameter is; "to I where all parameters are I".
 d   "If a row then fits": the gathered operands stay B (not sliced again: that would be an all-to-all) or I (so only the
     I row); the operands not gathered may take the moves of rules 2 and 3. Else refused.
"""
from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Callable, Dict, List, Optional, Sequence, Tuple

Shape = Tuple[int, ...]
Row = Tuple[Tuple[str, ...], str]  # what each operand must be, what the result is

# ---------------------------------------------------------------------------------------------- rows


def S(dim: int) -> str:
    return f"S{dim}"


def is_split(placement: str) -> bool:
    return placement.startswith("S")


def unary(shape: Shape, pending: bool, closed: Sequence[int] = ()) -> List[Row]:
    """Rows of an operation that keeps every dimension, those in closed not being split."""
    rows: List[Row] = [((S(d),), S(d)) for d in range(len(shape)) if d not in closed]
    return rows + ([(("P",), "P")] if pending else [])


def broadcasting(shapes: Sequence[Shape], pending: Sequence[str]) -> List[Row]:
    """A split result dimension is split in the operands that have it; pending lists rows as words, e.g. "PB"."""
    rank = max(len(shape) for shape in shapes)
    rows: List[Row] = [(tuple(word), "P") for word in pending]
    for d in range(rank):
        own = [d - rank + len(shape) for shape in shapes]
        ins = tuple(S(o) if o >= 0 and shape[o] != 1 else "B" for o, shape in zip(own, shapes))
        if any(map(is_split, ins)):
            rows.append((ins, S(d)))
    return rows


def matmul(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    (x, w), (contracted,) = shapes, ints
    kept = len(x) - contracted
    if contracted < 1 or x[kept:] != w[:contracted]:
        raise ValueError(f"matmul: {x} and {w} do not contract {contracted} dimensions")
    return ([((S(d), "B"), S(d)) for d in range(kept)]
            + [(("B", S(d)), S(kept + d - contracted)) for d in range(contracted, len(w))]
            + [((S(kept + d), S(d)), "P") for d in range(contracted)]
            + [(("P", "B"), "P"), (("B", "P"), "P")])


def batched_matmul(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    x, w = shapes
    if len(x) < 3 or x[:-2] != w[:-2] or x[-1] != w[-2]:
        raise ValueError(f"batched_matmul: {x} and {w}")
    m, n = len(x) - 2, len(x) - 1  # k is the last of x, the last but one of w
    return ([((S(d), S(d)), S(d)) for d in range(m)]
            + [((S(m), "B"), S(m)), (("B", S(n)), S(n)), ((S(n), S(m)), "P"), (("P", "B"), "P"), (("B", "P"), "P")])


def concatenate(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    (along,), count = ints, len(shapes)
    return [((S(d),) * count, S(d)) for d in range(len(shapes[0])) if d != along] + [(("P",) * count, "P")]


def norm(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    last, weights = len(shapes[0]) - 1, len(shapes) - 1
    return ([((S(d),) + ("B",) * weights, S(d)) for d in range(last)]
            + [((S(last),) + ("S0",) * weights, S(last)),  # reduces its statistics itself
               (("B",) + ("P",) * weights, "P")])


def attention(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    batch, sequence, heads, size = map(S, range(4))
    return [((batch, batch, batch), batch),
            ((heads, heads, heads), heads),
            ((heads, "B", "B"), heads),
            ((sequence, "B", "B"), sequence),
            (("B", sequence, sequence), "P"),  # reduces its maxima and denominators itself
            (("B", "B", size), size),
            (("B", "B", "P"), "P")]


def embedding(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    last = len(shapes[0])
    return ([((S(d), "B"), S(d)) for d in range(last)]
            + [(("B", "S1"), S(last)), (("B", "S0"), "P"), (("B", "P"), "P")])


def cross_entropy(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    last = len(shapes[1])
    return [((S(d), S(d)), S(d)) for d in range(last)] + [((S(last), "B"), "I")]  # the last reduces by itself


def reduction(split_gives: str, pending: bool) -> Callable[[Sequence[Shape], Sequence[int]], List[Row]]:
    def rows(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
        rank = len(shapes[0])
        dropped = ints or range(rank)
        found: List[Row] = [
            ((S(d),), split_gives if d in dropped else S(d - sum(e < d for e in dropped))) for d in range(rank)]
        return found + ([(("P",), "P")] if pending else [])
    return rows


def reshape(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    (old,), new = shapes, tuple(ints)
    if prod(old) != prod(new):
        raise ValueError(f"reshape: {old} to {new}")
    return [(("P",), "P")] + [((S(d),), S(e)) for d in range(len(old)) for e in range(len(new))
                              if prod(old[:d]) == prod(new[:e]) and gcd(old[d], new[e]) > 1]


def transpose(shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    return [(("P",), "P")] + [((S(d),), S(i)) for i, d in enumerate(ints)]


ROWS: Dict[str, Callable[[Sequence[Shape], Sequence[int]], List[Row]]] = {
    "matmul": matmul,
    "batched_matmul": batched_matmul,
    "add": lambda shapes, ints: broadcasting(shapes, ["PP"]),
    "subtract": lambda shapes, ints: broadcasting(shapes, ["PP"]),
    "multiply": lambda shapes, ints: broadcasting(shapes, ["PB", "BP"]),
    "divide": lambda shapes, ints: broadcasting(shapes, ["PB"]),
    "where": lambda shapes, ints: broadcasting(shapes, ["BPP"]),
    "concatenate": concatenate,
    "scale": lambda shapes, ints: unary(shapes[0], pending=True),
    "dropout": lambda shapes, ints: unary(shapes[0], pending=True),
    "square": lambda shapes, ints: unary(shapes[0], pending=False),
    "sqrt": lambda shapes, ints: unary(shapes[0], pending=False),
    "exp": lambda shapes, ints: unary(shapes[0], pending=False),
    "gelu": lambda shapes, ints: unary(shapes[0], pending=False),
    "relu": lambda shapes, ints: unary(shapes[0], pending=False),
    "cast": lambda shapes, ints: unary(shapes[0], pending=False),
    "softmax": lambda shapes, ints: unary(shapes[0], pending=False),  # over a split dimension it reduces by itself
    "slice": lambda shapes, ints: unary(shapes[0], pending=True, closed=ints[:1]),
    "layer_norm": norm,
    "rms_norm": norm,
    "attention": attention,
    "embedding": embedding,
    "cross_entropy": cross_entropy,
    "sum": reduction("P", pending=True),
    "mean": reduction("P", pending=True),  # divides by the global count
    "max": reduction("I", pending=False),  # over a split dimension it reduces by itself
    "reshape": reshape,
    "transpose": transpose,
}

# The operands that act element by element, and what an Invariant parameter there becomes beside a pending sum:
# a term joins it (P), a factor becomes Broadcast (B). Unary functions have no operand beside their own.
ELEMENT_BY_ELEMENT: Dict[str, str] = {
    "add": "PP",
    "subtract": "PP",
    "multiply": "BB",
    "divide": "BB",
    "where": "BPP",
    "concatenate": "P*",
    "layer_norm": "-BP",
    "rms_norm": "-B",
}


def rows_of(op: str, shapes: Sequence[Shape], ints: Sequence[int]) -> List[Row]:
    """All rows but the Invariant one."""
    rows: List[Row] = [(("B",) * len(shapes), "B")] + ROWS[op](shapes, ints)
    return [(ins, out) for ins, out in rows
            if all(shape[int(p[1:])] > 1 for shape, p in zip(shapes, ins) if is_split(p))]


# ---------------------------------------------------------------------------------------------- the rule


@dataclass(frozen=True)
class Operand:
    shape: Shape
    placement: str
    data: bool
    parameter: bool
    beside_pending: str  # from ELEMENT_BY_ELEMENT, "-" if it does not act element by element
    gathered: bool = False  # by rule 5: moves no more

    @property
    def whole(self) -> bool:
        return self.placement in ("I", "B")

    @property
    def split(self) -> bool:
        return is_split(self.placement)

    @property
    def whole_data(self) -> bool:
        return self.data and self.whole and not self.gathered


Operands = Sequence[Operand]
May = Callable[[Operand, str], bool]  # may this operand enter as this?


def fit(rows: Sequence[Row], operands: Operands, may: May) -> Optional[Row]:
    """The row that all operands may enter, with the fewest slices, the first of these."""
    fitting = [row for row in rows if all(map(may, operands, row[0]))]
    return min(fitting, default=None, key=lambda row: sum(map(is_split, row[0])))


def as_it_is(operand: Operand, want: str) -> bool:
    return operand.placement == want or operand.whole_data and (want == "B" or is_split(want))


def retyped(operand: Operand, want: str) -> bool:
    return as_it_is(operand, want) or operand.placement == "I" and want == "B" and not operand.gathered


def sliced(operand: Operand, want: str, parameter_is_split: bool) -> bool:
    if retyped(operand, want):
        return True
    if not (operand.whole and is_split(want)) or operand.gathered:
        return False
    return operand.beside_pending != "-" if operand.parameter else parameter_is_split


def joined(operand: Operand, want: str) -> bool:
    return as_it_is(operand, want) or (
        operand.parameter and operand.placement == "I" and operand.beside_pending == want)


def invariant(operands: Operands) -> Optional[Row]:
    """Rule 1."""
    if all(o.placement == "I" or o.whole_data for o in operands):
        return ("I",) * len(operands), "I"
    return None


def free(rows: Sequence[Row], operands: Operands) -> Optional[Row]:
    """Rule 3."""
    if any(o.placement == "P" for o in operands):
        return fit(rows, operands, joined)
    parameter_is_split = any(o.parameter and o.split for o in operands)
    return (fit(rows, operands, retyped)
            or fit(rows, operands, lambda o, want: sliced(o, want, parameter_is_split)))


def completed(rows: Sequence[Row], operands: Operands) -> List[Operand]:
    """Rule 4: each pending operand as the row of the split operands asks, if it asks a split, else Invariant."""
    def gone(asked: Sequence[str]) -> List[Operand]:
        return [replace(o, placement=p if is_split(p) else "I") if o.placement == "P" else o
                for o, p in zip(operands, asked)]

    def enters(asked: Sequence[str]) -> bool:
        after = gone(asked)
        parameter_is_split = any(o.parameter and o.split for o in after)
        return all(sliced(o, p, parameter_is_split) for o, p in zip(after, asked))

    def splits(asked: Sequence[str]) -> int:
        return sum(is_split(p) for o, p in zip(operands, asked) if o.placement == "P")

    nothing: Sequence[str] = ("I",) * len(operands)
    if not any(o.split for o in operands):
        return gone(nothing)
    return gone(max((ins for ins, _ in rows if enters(ins)), default=nothing, key=splits))


def gathered(operands: Operands) -> Optional[List[Operand]]:
    """Rule 5: None if there is no parameter, or nothing to gather beside it."""
    parameters = [o for o in operands if o.parameter]
    if not parameters or not any(o.split and not o.parameter for o in operands):
        return None
    to = "I" if all(o.placement == "I" for o in parameters) else "B"
    return [replace(o, placement=to, gathered=True) if o.split and not o.parameter else o for o in operands]


def derive(rows: Sequence[Row], operands: Operands) -> Tuple[int, Optional[Row]]:
    """The highest numbered rule used, and the row; (6, None) is a refusal."""
    first = (invariant, lambda os: fit(rows, os, as_it_is), lambda os: free(rows, os))
    for rule, attempt in enumerate(first, start=1):
        row = attempt(operands)
        if row:
            return rule, row
    if any(o.placement == "P" for o in operands):
        rule, row = derive(rows, completed(rows, operands))
        return max(rule, 4), row
    moved = gathered(operands)
    if moved:
        for attempt in first:
            row = attempt(moved)
            if row:
                return 5, row
    return 6, None


# ---------------------------------------------------------------------------------------------- cases as JSON

KINDS = {  # data, parameter
    "data": (True, False),
    "parameter": (False, True),
    "activation": (False, False),
    "constant": (True, True),
}


def entering(operand: Operand, asked: str) -> str:
    if not operand.data or asked not in ("I", "B") or operand.split:
        return asked
    return "I" if operand.placement == "P" else operand.placement


def answer(case: dict, explain: bool = False) -> dict:
    op, ints, given = case["op"], case.get("ints", []), case["operands"]
    roles = ELEMENT_BY_ELEMENT.get(op, "").replace("P*", "P" * len(given)).ljust(len(given), "-")
    operands = [Operand(tuple(o["shape"]), o["placement"], *KINDS[o["kind"]], role) for o, role in zip(given, roles)]
    rule, row = derive(rows_of(op, [o.shape for o in operands], ints), operands)
    if op == "attention" and all(o.placement == S(1) for o in operands):
        rule, row = 6, None
    result: dict = {"to": list(map(entering, operands, row[0])), "results": [row[1]]} if row else {"refused": True}
    return {**result, "rule": rule} if explain else result


# ---------------------------------------------------------------------------------------------- self-test

# op and ints | operands (kind letter: data, parameter, activation, constant; shape; placement) | expected | rule
HAND = """
# tensor parallel layers: column (data, then activation: Megatron's f), row, bias joins the pending sum, residual
matmul 1       | d 4,16 I   ; p 16,32 S1              | I S1 -> S1       | 2
matmul 1       | a 4,16 I   ; p 16,32 S1              | B S1 -> S1       | 3
add            | a 4,32 S1  ; p 32 S0                 | S1 S0 -> S1      | 2
add            | a 4,32 S1  ; p 32 I                  | S1 S0 -> S1      | 3
gelu           | a 4,32 S1                            | S1 -> S1         | 2
matmul 1       | a 4,32 S1  ; p 32,16 S0              | S1 S0 -> P       | 2
add            | a 4,16 P   ; p 16 I                  | P P -> P         | 3
add            | a 4,16 P   ; c 16 I                  | P P -> P         | 3
add            | a 4,16 P   ; p 16 B                  | B B -> B         | 4
add            | a 4,16 I   ; a 4,16 P                | I I -> I         | 4
add            | a 4,16 P   ; d 4,16 I                | I I -> I         | 4
gelu           | a 4,32 P                             | I -> I           | 4
dropout        | a 4,32 P                             | P -> P           | 2
multiply       | a 4,16 P   ; p 16 I                  | P B -> P         | 3
multiply       | a 4,16 P   ; a 16 I                  | I I -> I         | 4
divide         | p 16 I     ; a 4,16 P                | I I -> I         | 4
cast           | a 4,16 P                             | I -> I           | 4
matmul 1       | a 4,16 I   ; p 16,32 S0              | S1 S0 -> P       | 3
matmul 1       | a 4,16 P   ; p 16,32 I               | I I -> I         | 4
matmul 1       | a 4,16 P   ; d 16,32 I               | P I -> P         | 2
matmul 1       | a 4,16 P   ; p 16,32 S0              | S1 S0 -> P       | 4
# N-D weights: fused query, key, value [16, 3, heads, 8]; output projection contracts two dimensions
matmul 1       | a 2,4,16 I ; p 16,3,2,8 S2           | B S2 -> S3       | 3
matmul 2       | a 2,4,2,8 S2 ; p 2,8,16 S0           | S2 S0 -> P       | 2
# all whole, where data stays as it lies; Broadcast is not Invariant
matmul 1       | d 4,6 B    ; p 6,8 I                 | B I -> I         | 1
matmul 1       | a 4,6 B    ; p 6,8 I                 | B B -> B         | 3
# data parallel
matmul 1       | d 4,6 S0   ; p 6,8 I                 | S0 B -> S0       | 3
layer_norm     | a 4,2,6 S0 ; p 6 I ; p 6 I           | S0 B B -> S0     | 3
subtract       | a 4,6 S0   ; d 4,6 I                 | S0 S0 -> S0      | 2
mean           | a 4,6 S0                             | S0 -> P          | 2
sum 0          | a 4,6 S1                             | S1 -> S0         | 2
max 1          | a 4,6 S1                             | S1 -> I          | 2
# sequence parallel: gathered before the column weight, reduce-scattered into the residual
matmul 1       | a 2,4,16 S1 ; p 16,32 S1             | B S1 -> S2       | 5
add            | a 2,4,16 S1 ; a 2,4,16 P             | S1 S1 -> S1      | 4
matmul 1       | a 4,6 S1   ; p 6,8 I                 | I I -> I         | 5
matmul 1       | a 4,6 S1   ; p 6,8 B                 | B B -> B         | 5
# hidden dimension split in a norm; a pending x is reduce-scattered to it
rms_norm       | a 4,6 S1   ; p 6 I                   | S1 S0 -> S1      | 3
layer_norm     | a 4,6 P    ; p 6 S0 ; p 6 I          | S1 S0 S0 -> S1   | 4
layer_norm     | a 4,6 B    ; p 6 P ; p 6 I           | B P P -> P       | 3
# embedding over a split vocabulary, over split columns, with split indices
embedding      | d 2,4 I    ; p 32,16 S0              | I S0 -> P        | 2
embedding      | d 2,4 I    ; p 32,16 S1              | I S1 -> S2       | 2
embedding      | d 2,4 S0   ; p 32,16 I               | S0 B -> S0       | 3
embedding      | d 2,4 S0   ; p 32,16 S0              | B S0 -> P        | 5
cross_entropy  | a 2,4,32 S2 ; d 2,4 I                | S2 I -> I        | 2
cross_entropy  | a 2,4,32 S0 ; d 2,4 I                | S0 S0 -> S0      | 2
# attention: heads, grouped queries with whole keys and values, by-name row, flash decoding
attention      | a 2,4,4,8 S2 ; a 2,4,4,8 S2 ; a 2,4,4,8 S2 | S2 S2 S2 -> S2 | 2
attention      | a 2,4,4,8 S2 ; a 2,4,1,8 I ; a 2,4,1,8 I   | S2 B B -> S2   | 3
attention      | a 2,4,4,8 S1 ; a 2,4,4,8 S1 ; a 2,4,4,8 S1 | refused        | 6
attention      | p 2,4,4,8 S1 ; a 2,4,4,8 S1 ; a 2,4,4,8 S1 | refused        | 6
attention      | a 2,4,4,8 I ; a 2,4,4,8 S1 ; a 2,4,4,8 S1  | B S1 S1 -> P   | 3
attention      | a 2,4,4,8 S2 ; a 2,4,4,8 S2 ; a 2,4,4,8 I  | refused        | 6
# shapes
where          | d 4,6 I    ; a 2,4,6 P ; c 1 I       | I P P -> P       | 3
where          | d 4,6 I    ; a 2,4,6 S1 ; a 6 I      | S0 S1 B -> S1    | 3
softmax 1      | a 4,6 S1                             | S1 -> S1         | 2
transpose 2,0,1 | a 2,4,6 S0                          | S0 -> S1         | 2
reshape 8,6    | a 2,4,6 S0                           | S0 -> S0         | 2
reshape 8,6    | a 2,4,6 S1                           | refused          | 6
reshape 2,3,4  | a 2,1,12 S2                          | S2 -> S1         | 2
slice 1,0,3    | a 4,6 S1                             | refused          | 6
slice 1,0,3    | a 4,6 S0                             | S0 -> S0         | 2
concatenate 1  | a 4,6 S0   ; a 4,2 S0                | S0 S0 -> S0      | 2
concatenate 1  | a 4,6 S1   ; a 4,6 S1                | refused          | 6
concatenate 1  | a 4,6 S1   ; p 4,6 I                 | I I -> I         | 5
batched_matmul | a 2,4,6 S0 ; a 2,6,8 S0              | S0 S0 -> S0      | 2
batched_matmul | a 2,4,6 S2 ; d 2,6,8 I               | S2 S1 -> P       | 2
# refusals: activations that disagree, an activation split otherwise than a parameter asks
add            | a 4,6 S0   ; a 4,6 S1                | refused          | 6
add            | a 4,6 S0   ; a 4,6 I                 | refused          | 6
add            | a 4,6 S0   ; a 6 I                   | S0 B -> S0       | 3
add            | a 4,6 I    ; p 4,6 S0                | S0 S0 -> S0      | 3
add            | a 4,6 S1   ; p 4,6 S0                | refused          | 6
matmul 1       | a 4,6 S0   ; p 6,8 S0                | refused          | 6
matmul 1       | a 4,6 I    ; a 6,8 S0                | refused          | 6
"""


def self_test() -> int:
    letters = {kind[0]: kind for kind in KINDS}
    cases = failures = 0
    for line in filter(lambda text: text and not text.startswith("#"), HAND.splitlines()):
        name, listed, expected, rule = (part.strip() for part in line.split("|"))
        op, _, ints = name.partition(" ")
        operands = []
        for kind, shape, placement in (operand.split() for operand in listed.split(";")):
            operands.append({"shape": json.loads(f"[{shape}]"), "kind": letters[kind], "placement": placement})
        got = answer({"op": op, "ints": json.loads(f"[{ints}]"), "operands": operands}, explain=True)
        shown = "refused" if "refused" in got else " ".join(got["to"]) + " -> " + got["results"][0]
        cases += 1
        if (shown, got["rule"]) != (expected, int(rule)):
            failures += 1
            print(f"{line}\n    got {shown} by rule {got['rule']}")
    print(f"{cases} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments: Sequence[str]) -> int:
    if "--self-test" in arguments:
        return self_test()
    for line in filter(str.strip, sys.stdin):
        print(json.dumps(answer(json.loads(line), explain="--explain" in arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
