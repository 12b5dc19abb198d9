"""From recordings to features: EEG and ECG of one person, cut into labelled windows.

:func:`~crossfade.signals.recordings.open_recording` opens a file (XDF, MATLAB, and every format of
MNE) and reads its channels in microvolts. `_labels` finds labelled segments: by the name of the
file, its annotations or a table. `_extract` cuts them into windows and computes features by a
:class:`~crossfade.Recipe`: band powers and tangent vectors (`eeg`), or heart-rate variability
(`ecg`). `_online` computes the same features of a running stream, with the same code and the past
alone (`_causal`). `_collect` makes the table of many files that :func:`crossfade.read_tasks` reads.
"""

from crossfade.signals._collect import Collected, collect, process_files
from crossfade.signals._extract import KINDS, clean, ecg_recipe, eeg_recipe, extract, finish
from crossfade.signals._hamilton import find_beats
from crossfade.signals._labels import Segment, label_from
from crossfade.signals._mat import load_mat
from crossfade.signals._online import OnlineFeatures, RawWindows
from crossfade.signals._variability import features_of_windows, heart_features
from crossfade.signals.eeg import BANDS, average_reference, band_pass
from crossfade.signals.recordings import Annotation, plain_name
