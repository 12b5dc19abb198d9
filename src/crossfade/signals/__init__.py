"""From recordings to features: EEG and ECG of one person, cut into labelled windows.

`recordings` opens files, `_labels` finds labelled segments, `_extract` computes features by a
:class:`~crossfade.Recipe` (`eeg`, `ecg`), `_online` those of a running stream with its past alone
(`_causal`), and `_collect` makes the table of many files.
"""

from crossfade.signals._collect import Collected, collect, process_files
from crossfade.signals._extract import KINDS, clean, ecg_recipe, eeg_recipe, extract, finish
from crossfade.signals._labels import Segment, label_from
from crossfade.signals._online import OnlineFeatures, RawWindows
from crossfade.signals._variability import features_of_windows, heart_features
from crossfade.signals.ecg import find_beats
from crossfade.signals.eeg import BANDS, average_reference, band_pass
from crossfade.signals.recordings import Annotation, load_mat, plain_name
