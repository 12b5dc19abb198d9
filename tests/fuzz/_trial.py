"""One case: every call of it is answered, or refused in words that are meant."""

import dis
import logging
import resource
import signal
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import sklearn

import crossfade

_OURS = Path(crossfade.__file__).parent
#: scikit-learn looks at samples and labels for us: what it says there is meant.
_VALIDATION = Path(sklearn.__file__).parent / "utils"
_RAISE = dis.opmap["RAISE_VARARGS"]
#: What a user may be told in. A bare RuntimeError or AssertionError is a fault of ours.
_MEANT = (ValueError, TypeError, KeyError, AttributeError, ImportError, OSError)
#: Seconds of work after which a case hangs, and of waiting; and memory beyond what there is.
BUSY, WAITING, MEMORY = 20.0, 180.0, 4 << 30

#: The last is a fault of the suite itself, which says nothing of the package.
WRONG, RAW, HANG, FAULT = KINDS = ("wrong answers", "raw errors", "hangs", "suite faults")


class WrongError(Exception):
    """An answer that cannot be right."""


class RawError(Exception):
    """An error that no one meant to give."""


class HangError(BaseException):
    """A call that does not come back; no ``except Exception`` of anybody's may catch it."""


class Trial:
    """Calls of one case."""

    def __init__(self, rng, folder=None):
        self.rng = rng
        self.folder = folder
        self.n_calls = self.n_refused = 0
        self.refusal = self.failure = None

    def call(self, function, /, *arguments, **options):
        """What a call returns; None where it is refused as is meant."""
        self.n_calls += 1
        try:
            return function(*arguments, **options)
        except Exception as error:
            if not is_meant(error):
                raise RawError(described(error)) from error
            self.refusal = error
            self.n_refused += 1
            return None

    def made(self, make):
        """What a constructor makes, which is not counted; None where it refuses."""
        found = self.call(make)
        self.n_calls -= 1
        self.n_refused -= found is None
        return found

    def must(self, function, /, *arguments, **options):
        """What a call returns that there is no reason to refuse."""
        found = self.call(function, *arguments, **options)
        if found is None:
            raise WrongError(f"{_name(function)} refused what it has to take: {self.refusal}")
        return found

    def check(self, holds, what):
        """Refuse an answer."""
        if not holds:
            raise WrongError(what)


def is_meant(error):
    """Whether an error was raised by a ``raise`` of ours, or by scikit-learn's validation."""
    if isinstance(error, Warning) or not isinstance(error, _MEANT):
        return False
    frames = list(traceback.walk_tb(error.__traceback__))
    places = [Path(frame.f_code.co_filename) for frame, _ in frames]
    for place in reversed(places):
        if _VALIDATION in place.parents:
            # Conversions that fail within it, too.
            return isinstance(error, (ValueError, TypeError)) and not isinstance(
                error, np.linalg.LinAlgError
            )
        if _OURS in place.parents:
            break
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    return _OURS in places[-1].parents and code.co_code[last.tb_lasti] == _RAISE


def described(error):
    """Type, place and words of an error; the place is the last line of ours."""
    ours = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _OURS in Path(frame.f_code.co_filename).parents
    ]
    path, line = ours[-1] if ours else (Path("elsewhere"), 0)
    where = path.relative_to(_OURS) if ours else path
    return f"{type(error).__name__} at {where}:{line}: {str(error)[:200]}"


def _name(function):
    return getattr(function, "__qualname__", repr(function))


@contextmanager
def limited(memory=None, busy=BUSY, waiting=WAITING):
    """Raise after so many seconds of work or of waiting; refuse memory beyond a limit."""

    def stop(number, _):
        raise HangError(f"{busy:g} s of work" if number == signal.SIGPROF else f"{waiting:g} s")

    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if memory is not None:
        with open("/proc/self/statm") as text:
            held = int(text.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + memory, hard))
    signal.setitimer(signal.ITIMER_PROF, busy)
    signal.setitimer(signal.ITIMER_REAL, waiting)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def strict():
    """Warnings as errors, but those that users are meant to read; what is logged is not shown."""
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", np.exceptions.VisibleDeprecationWarning)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
