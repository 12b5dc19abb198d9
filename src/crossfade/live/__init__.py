"""A session with a new person: windows come one by one, and their rule is always ready.

============== =====================================================================================
module         what it is about
============== =====================================================================================
`_calibration` the session: windows, labels, what is known after each, and whether to go on
`_records`     what it holds and reports: a window, a state, a prediction
`_sums`        what is counted of the windows, and the rule that follows
`_drift`       whether the person, or the signal, has changed
`_folder`      what a session begins with; `_journal`, every action on disk before it counts
`_streams`     where samples come from: a recording played again, lines of features; `_lsl`, LSL
`_session`     a stream drives the calibration: cues, windows, labels
`_view`        what the page shows of it: sentences, the course, the signal
`_server`      the page's address, socket and token; `_page` is the page, and the report
`_publish`     where predictions go: standard output, and LSL
`_run`         puts prior, stream and folder together for ``crossfade live``
============== =====================================================================================

The rule is that of `blend`, fitted to the moments of the windows so far. The advice whether to go
on is that of `blend/_advice`, which a study judges on simulated sessions (method ``live``).
"""

from crossfade.live._calibration import LiveCalibration
from crossfade.live._records import LiveState, LiveWindow, Prediction

__all__ = ["LiveCalibration", "LiveState", "LiveWindow", "Prediction"]

for _name in __all__:
    globals()[_name].__module__ = __name__
