"""Worker processes: points that run on one core are spread over all of them.

What JAX traces is sharded over devices; a sampler of plain Python keeps one core busy, and threads
would wait for one another's lock. So a run starts processes of its own, each of which takes the
next point, computes it and keeps it where the run looks (:mod:`sims.study.shelf`). Such a process
has one device and one thread of JAX's: with more of them many small operations are handed from
thread to thread, and take twice the time. One of them predicts first. Where there is
no such point a worker predicts, which keeps about one core busy, while the run simulates. They are
a help and no more: what a worker fails at, or dies at, the run computes itself, and what is wrong
with it is said there. Numbers do not depend on who computed them.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from _thread import interrupt_main
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from sims.study.experiment import Experiment
from sims.study.predicting import predict
from sims.study.simulating import Simulation

PREDICTION = ""
"""What a worker is told to have it predict; no point has that name."""
ONE_CORE = {"NPROC": "1", "SIMS_HOST_DEVICES": "1"}
"""Environment of a process that keeps one core busy: threads and devices that JAX starts there."""
LOOK_EVERY = 0.5
"""Seconds between looks at what workers have done."""
SECONDS = 10.0
"""That a worker may take to keep its batches, once it is told to end."""


class Worker:
    """A process that computes points of one simulation, as it is told their names.

    Args:
        experiment: which one.
        output: the file that the simulation is written to.
        environment: beside that of the run.
    """

    def __init__(
        self, experiment: Experiment, output: Path, environment: Mapping[str, str] = ONE_CORE
    ) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sims.study.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | environment | {"PYTHONPATH": paths},
        )
        self.ready = False
        self._send(pickle.dumps((replace(experiment), output)))  # without what it has worked out

    def serve(self, left: deque[str], done: set[str]) -> None:
        """Have it compute the names in ``left``, until none is left or it fails.

        Args:
            left: shared with others who take from it.
            done: gets the names that are computed.
        """
        self.ready = self._replied()
        while self.ready:
            try:
                name = left.popleft()
            except IndexError:
                return
            self._send(name.encode() + b"\n")
            if not self._replied():
                return
            done.add(name)

    def close(self) -> None:
        """End it; it keeps what it has of a point that it has begun."""
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(SECONDS if self.ready else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()  # type: ignore[union-attr]

    def _send(self, line: bytes) -> None:
        with suppress(OSError):  # it is gone, and does not reply
            self.process.stdin.write(line)  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def _replied(self) -> bool:
        return bool(self.process.stdout.readline())  # type: ignore[union-attr]


class Crew:
    """The workers of one simulation; as a context they are at work from its beginning on.

    Args:
        experiment: which one.
        output: the file that the simulation is written to.
        count: processes that compute at a time, the run's own among them while it does.
        predicting: whether one of them is to predict.

    Attributes:
        done: names of the points that workers have computed, and :data:`PREDICTION`.
    """

    def __init__(
        self, experiment: Experiment, output: Path, count: int, predicting: bool = False
    ) -> None:
        run = Simulation(experiment, output)
        needed = {k: unit for k, unit in run.units.items() if not run.shelf.finished(unit).exists()}
        self.done: set[str] = set()
        self._hired = (experiment, output)
        self._count = count
        self._left = deque(name for name, unit in needed.items() if unit.on_one_core)
        self._others = [name for name in needed if name not in self._left]
        self._helpers: list[tuple[Worker, threading.Thread]] = []
        self._predictor: tuple[Worker, threading.Thread] | None = None
        self._stack = ExitStack()
        if count > 1 and self._left:
            if predicting:
                self._left.appendleft(PREDICTION)
            self._staff(count - bool(self._others))
        elif count > 1 and needed and predicting:
            self._predictor = self._hire(deque([PREDICTION]), {})

    def _staff(self, most: int) -> None:
        """Hire as many as there is work for, and no more than so many in all."""
        for _ in range(min(most - len(self._helpers), len(self._left))):
            self._helpers.append(self._hire(self._left, ONE_CORE))

    def _hire(
        self, left: deque[str], environment: Mapping[str, str]
    ) -> tuple[Worker, threading.Thread]:
        worker = Worker(*self._hired, environment)
        self._stack.callback(worker.close)
        thread = threading.Thread(target=worker.serve, args=(left, self.done), daemon=True)
        thread.start()
        return worker, thread

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *error: object) -> None:
        """End the workers."""
        self._stack.close()

    def predicted(self, predict: Callable[[], object], wait: bool) -> None:
        """See to it that there are predictions; at most once by this process.

        Args:
            predict: makes them in this process, if no worker does or the one that tried has failed.
            wait: whether they are needed now; a worker that has not begun by then is left out.
        """
        if self._predictor is not None and PREDICTION not in self.done:
            worker, thread = self._predictor
            if not wait and thread.is_alive():
                return
            if not worker.ready:
                worker.close()
            thread.join()
        if not wait and any(thread.is_alive() for _, thread in self._helpers):
            return
        if PREDICTION not in self.done:
            predict()
            self.done.add(PREDICTION)

    def join(self, begun: Callable[[str], object], told: Callable[[], object]) -> None:
        """Compute what is left with the workers: what takes all devices here, the rest there.

        Args:
            begun: computes a point in this process.
            told: called when workers have done more.
        """
        if not self._helpers:
            return
        for name in self._others:
            begun(name)
        self._staff(self._count)
        count = len(self.done)
        for worker, thread in self._helpers:
            # One that is not ready has nothing to do, unless nobody else is there to do it.
            while thread.is_alive() and (worker.ready or self._left):
                thread.join(LOOK_EVERY)
                if len(self.done) > count:
                    count = len(self.done)
                    told()


def _listen(names: "queue.SimpleQueue[str | None]") -> None:
    """Put what is asked for into the queue; at the end of it, stop what is computed."""
    for line in sys.stdin.buffer:
        names.put(line.decode().rstrip("\n"))
    names.put(None)
    interrupt_main()


def main() -> None:
    """What a worker does: read an experiment, then names, and reply with a line to each.

    It ends when the run closes its input, or is no more; batches of an unfinished point are kept.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # the run decides when it ends
        signal.signal(number, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an experiment's own code prints is no reply
    names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    experiment, output = pickle.load(sys.stdin.buffer)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_listen, args=(names,), daemon=True).start()
    run = Simulation(experiment, output)
    # An exception is met by the run again, which says what is wrong.
    with suppress(KeyboardInterrupt, Exception), threadpool_limits(1):
        print("ready", file=replies, flush=True)
        while (name := names.get()) is not None:
            if name == PREDICTION:
                predict(experiment, output.with_name("theory.nc"))
            else:
                run.begun(name)
            print(name, file=replies, flush=True)
    # What Python does at its end takes half a second, and wants the input that a thread waits for.
    os._exit(0)


if __name__ == "__main__":
    main()
