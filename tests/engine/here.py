"""What a version was seen to do in one process on this machine: what it does elsewhere is held against that."""

from reports.results.published import published
from reports.results.reading import Results
from tests.support.effort import sample
from tests.support.whole_suite import whole_suite


def digests(target):
    """Case id → the digest of its published answer."""
    return {
        cell.case: cell.behaviour for cell in Results.read_all(list(published())).cells if cell.target == target.name
    }


def first_of_each_family(answered, runnable, few=3):
    """The first case of each family (of ``few`` families, except in a full run) that was answered and is runnable elsewhere.

    None of them reads the clock.

    ``answered``: digests by case id; ``runnable``: says so of a case.
    """
    cases = [case for case in whole_suite().cases if answered.get(case.id) and runnable(case)]
    families = {case.family: case for case in reversed(cases) if "processing-time" not in case.id}
    return sample(tuple(families.values()), few)
