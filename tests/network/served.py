"""A site as a process of its own: ``privet party serve``, perhaps killed at a point.

Usage: served.py POLICY [POINT AFTER]
"""

import os
import signal
import sys

from privet.cli import main
from privet.federation.party import Party
from privet.network.journal import Journal
from privet.privacy import StudyReservation

#: Where a process ends: before or after a call of a method, perhaps of some questions only.
POINTS = {
    "before the charge": (Party, "answer", "before", {"noisy_class_counts"}),
    "after the charge": (Party, "answer", "after", {"noisy_class_counts"}),
    "before the sync": (Journal, "sync", "before", None),
    "after the journal": (Journal, "sync", "after", None),
    "after the count": (StudyReservation, "count", "after", None),
    "in a secret choice": (Party, "answer", "before", {"step"}),
}


def kill_at(point, after):
    kind, method, when, questions = POINTS[point]
    work, left = getattr(kind, method), [int(after)]

    def fused(self, *given, **options):
        if questions is not None and given[1] not in questions:
            return work(self, *given, **options)
        left[0] -= 1
        if left[0] == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = work(self, *given, **options)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(kind, method, fused)


if __name__ == "__main__":
    policy, *fuse = sys.argv[1:]
    if fuse:
        kill_at(*fuse)
    sys.argv = ["privet", "party", "serve", "--policy", policy]
    main()
