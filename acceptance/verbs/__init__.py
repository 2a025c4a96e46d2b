"""What each verb of the command line does: a module each, imported when it is asked for, because none needs all of rigproof."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def _accept(given: argparse.Namespace) -> int:
    from acceptance.verbs import accept

    return accept.run(given)


def _nightly(given: argparse.Namespace) -> int:
    from acceptance.verbs import nightly

    return nightly.run(given)


def _plan(given: argparse.Namespace) -> int:
    from acceptance.verbs import plan

    return plan.run(given)


def _inventory(given: argparse.Namespace) -> int:
    from acceptance.verbs import inventory

    return inventory.run(given)


def _judge(given: argparse.Namespace) -> int:
    from acceptance.verbs import judge

    return judge.run(given)


def _report(given: argparse.Namespace) -> int:
    from acceptance.verbs import report

    return report.run(given)


def _compare(given: argparse.Namespace) -> int:
    from acceptance.verbs import compare

    return compare.run(given)


def _schedule(given: argparse.Namespace) -> int:
    from acceptance.verbs import schedule

    return schedule.run(given)


def _baseline(given: argparse.Namespace) -> int:
    from acceptance.verbs import baseline

    return baseline.run(given)


def _history(given: argparse.Namespace) -> int:
    from acceptance.verbs import history

    return history.run(given)


def _read(given: argparse.Namespace) -> int:
    from acceptance.verbs import read

    return read.run(given)


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "accept": _accept,
    "nightly": _nightly,
    "plan": _plan,
    "inventory": _inventory,
    "judge": _judge,
    "report": _report,
    "compare": _compare,
    "baseline": _baseline,
    "history": _history,
    "schedule": _schedule,
    "read": _read,
}
