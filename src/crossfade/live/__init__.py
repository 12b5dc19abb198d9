"""A session with a new person: windows come one by one, and the rule is always ready.

============== =====================================================================================
`_calibration` the session: windows, labels, state, rule; `_records`, `_evidence` are its parts
`_folder`      the session on disk; `_journal`, its actions before they count
`_streams`     events of a stream, and recordings played again; `_lines` and `_lsl` read others
`_session`     calibrates from a stream; `_cues`, cues and the times at which labels hold
`_view`        what the page shows; `_server` and `_page` are the page, `_publish` predictions
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
