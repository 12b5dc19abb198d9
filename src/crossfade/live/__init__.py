"""A session with a new person: windows come one by one, and the rule is always ready.

============== =====================================================================================
module         what it is about
============== =====================================================================================
`_calibration` the session: windows, labels, state, rule, and the session's folder
`_records`     a window, a state, a prediction
`_evidence`    what the windows say, and whether a window fits the crowd
`_folder`      what a session begins with; `_journal`, its actions, on disk before they count
`_streams`     events of a stream, and recordings played again; `_lines`, lines of features from
               another program; `_lsl`, the Lab Streaming Layer
`_session`     calibrates from a stream; `_cues`, cues and the times at which labels hold
`_view`        what the page shows: notes, the state and its course, the signal
`_server`      the page's address, socket and token; `_page` is the page, and the report
`_publish`     predictions: on standard output, and by LSL
`_run`         ``crossfade live``: prior, stream and folder, and the model at the end
============== =====================================================================================
"""

from crossfade.live._calibration import LiveCalibration
from crossfade.live._lines import FeatureLines
from crossfade.live._lsl import LslStream, lsl
from crossfade.live._publish import Lines, Publisher
from crossfade.live._records import LiveState
from crossfade.live._run import about_session, run_live, serve, write_session
from crossfade.live._session import Session
from crossfade.live._streams import Back, Chunk, Ended, Lost, Marker, Note, Rehearsal, Replay, Row

__all__ = ["LiveCalibration", "LiveState"]

for _name in __all__:
    globals()[_name].__module__ = __name__
