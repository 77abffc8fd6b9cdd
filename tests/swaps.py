"""Oracle for record swapping: everything that may be drawn."""

from itertools import permutations


def partners_by_enumeration(areas, groups, risky, pairs_wanted):
    """Distribution of the partners of all records: every order of the records, every
    choice of a partner."""
    records = range(len(areas))
    orders = [
        (*first, *then)
        for first in permutations([r for r in records if risky[r]])
        for then in permutations([r for r in records if not risky[r]])
    ]
    total: dict[tuple[int, ...], float] = {}

    def follow(order, partner, pairs, chance):
        if not order or pairs == pairs_wanted:
            total[partner] = total.get(partner, 0.0) + chance
            return
        r, *rest = order
        eligible = [
            s
            for s in records
            if partner[s] == s and areas[s] != areas[r] and groups[s] == groups[r] and s != r
        ]
        if partner[r] != r or not eligible:
            follow(rest, partner, pairs, chance)
            return
        for s in eligible:
            after = list(partner)
            after[r], after[s] = s, r
            follow(rest, tuple(after), pairs + 1, chance / len(eligible))

    for order in orders:
        follow(list(order), tuple(records), 0, 1 / len(orders))
    return total
