"""An engine for tests of processes: does what its words say, and prints `ready` when it is done with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing.shared_memory import SharedMemory

SHARED: list[SharedMemory] = []
SLEEPERS: list[subprocess.Popen[bytes]] = []
SLEEPER = (sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()")


def start_sleeper(**how: object) -> None:
    """Starts a child that sleeps and waits until it does."""
    child = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE, **how)  # type: ignore[call-overload]
    child.stdout.readline()
    SLEEPERS.append(child)


def end_after_sleepers(number: int, frame: object) -> None:
    """Ends itself once its children have ended, which it tells nothing."""
    for child in SLEEPERS:
        child.wait()
    sys.exit(0)


def wait_for_worker() -> None:
    """Starts a worker that tells of a signal, and when told to end itself lets the worker end by closing its input."""
    code = "import signal, sys; signal.signal(15, lambda *_: print('worker was signalled', flush=True))"
    waits = "print('up', flush=True); sys.stdin.read(); print('worker ended', flush=True)"
    words = (sys.executable, "-c", f"{code}; {waits}")
    worker = subprocess.Popen(words, stdin=subprocess.PIPE)

    def end(number: int, frame: object) -> None:
        print("server was told", flush=True)
        worker.communicate()
        print("server ended", flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)


def storm() -> None:
    """Forks for ever: each process makes children that make children, up to a limit that spares the machine."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        for _ in range(2):
            try:
                if os.fork() == 0:
                    signal.pause() if os.getpid() % 3 else signal.sigtimedwait([], 0.01)
            except OSError:
                signal.sigtimedwait([], 0.01)
        signal.sigtimedwait([], 0.02)


def relay() -> None:
    """Hands its life from child to child: each forks one and ends at once."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        if os.fork():
            signal.sigtimedwait([], 0.002)
            os._exit(0)


for word in sys.argv[1:]:
    match word.partition("="):
        case ("child", _, ""):
            start_sleeper()
        case ("setsid-child", _, ""):
            start_sleeper(start_new_session=True)
        case ("clean-child", _, ""):
            start_sleeper(env={})
        case ("share", _, name):
            SHARED.append(SharedMemory(f"psm_{name}", create=True, size=4096))
        case ("ignore-term", _, ""):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case ("zombie", _, ""):
            zombie = subprocess.Popen(("true",))
            os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
            print(zombie.pid, flush=True)
        case ("say", _, text):
            print(text, flush=True)
        case ("environment", _, ""):
            print(sorted(os.environ.items()), flush=True)
        case ("exit", _, code):
            sys.exit(int(code))
        case ("signal", _, number):
            os.kill(os.getpid(), int(number))
        case ("worker", _, ""):
            wait_for_worker()
        case ("end-after-child", _, ""):
            signal.signal(signal.SIGTERM, end_after_sleepers)
        case ("count-term", _, ""):
            signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
        case ("storm", _, ""):
            storm()
        case ("relay", _, ""):
            relay()
print("ready", flush=True)
signal.pause()
