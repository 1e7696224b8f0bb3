"""Jobs in threads that stay."""

import multiprocessing
import threading

import pytest

from privet.engines import in_threads


def square(x):
    return x * x


def forked(queue):
    queue.put(in_threads(square, range(20), 2))


def test_results_come_in_order():
    assert in_threads(square, range(50), 4) == [x * x for x in range(50)]


def test_jobs_may_have_jobs_of_their_own():
    def work(x):
        return sum(in_threads(square, range(x), 3))

    assert in_threads(work, range(30), 3) == [sum(y * y for y in range(x)) for x in range(30)]


def test_a_job_that_fails_is_heard_of_and_the_others_are_waited_for():
    done = []

    def work(x):
        if x == 3:
            raise ValueError("no")
        done.append(x)

    with pytest.raises(ValueError, match="no"):
        in_threads(work, range(10), 2)
    seen = len(done)
    assert in_threads(square, range(4), 2) == [0, 1, 4, 9]
    assert len(done) == seen


def test_many_callers_share_the_threads():
    found = {}

    def call(name):
        found[name] = in_threads(square, range(200), 3)

    callers = [threading.Thread(target=call, args=(name,)) for name in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all(found[name] == [x * x for x in range(200)] for name in range(8))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    in_threads(square, range(20), 2)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=forked, args=(queue,))
    child.start()
    assert queue.get() == [x * x for x in range(20)]
    child.join()
    assert child.exitcode == 0
