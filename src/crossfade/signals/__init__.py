"""From recordings to features: EEG and ECG of one person, cut into labelled windows.

:func:`~crossfade.signals.recordings.open_recording` opens a file (XDF, MATLAB, and every format of
MNE) and reads its channels in microvolts. `_labels` finds labelled segments: by the name of the
file, its annotations or a table. `_extract` cuts them into windows and computes features by a
:class:`~crossfade.Recipe`: band powers and tangent vectors (`eeg`), or heart-rate variability
(`ecg`). `_online` computes the same features of a running stream, with the same code and the past
alone (`_causal`). `_collect` makes the table of many files that :func:`crossfade.read_tasks` reads.
"""

from crossfade.signals._collect import Collected as Collected
from crossfade.signals._collect import collect as collect
from crossfade.signals._collect import process_files as process_files
from crossfade.signals._extract import KINDS as KINDS
from crossfade.signals._extract import clean as clean
from crossfade.signals._extract import ecg_recipe as ecg_recipe
from crossfade.signals._extract import eeg_recipe as eeg_recipe
from crossfade.signals._extract import extract as extract
from crossfade.signals._extract import finish as finish
from crossfade.signals._hamilton import find_beats as find_beats
from crossfade.signals._labels import Segment as Segment
from crossfade.signals._labels import label_from as label_from
from crossfade.signals._mat import load_mat as load_mat
from crossfade.signals._online import OnlineFeatures as OnlineFeatures
from crossfade.signals._online import RawWindows as RawWindows
from crossfade.signals._variability import features_of_windows as features_of_windows
from crossfade.signals._variability import heart_features as heart_features
from crossfade.signals.eeg import BANDS as BANDS
from crossfade.signals.eeg import average_reference as average_reference
from crossfade.signals.eeg import band_pass as band_pass
from crossfade.signals.recordings import Annotation as Annotation
from crossfade.signals.recordings import plain_name as plain_name
