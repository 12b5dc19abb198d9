"""From recordings to features: EEG and ECG of one person, cut into labelled windows.

:func:`~crossfade.signals.recordings.open_recording` opens a file (XDF, MATLAB, and every format of
MNE) and reads its channels in microvolts. `_labels` marks segments of it: by the name of the file,
its annotations or a table. `_extract` cuts those into windows and computes their features, and says
what is wrong with the recording (gaps, flat or clipped channels, an ECG without a heartbeat):
band powers and tangent vectors (`eeg`), or heart-rate variability (`ecg`). `_online` does the same
for a running stream, by the same code and with the past alone (`_causal`). `_collect` does it for
many files, and returns the table that :func:`crossfade.read_tasks` reads.
"""

from crossfade.signals._collect import Collected as Collected
from crossfade.signals._collect import Label as Label
from crossfade.signals._collect import collect as collect
from crossfade.signals._collect import find_recordings as find_recordings
from crossfade.signals._collect import process_files as process_files
from crossfade.signals._extract import KINDS as KINDS
from crossfade.signals._extract import ECGFeatures as ECGFeatures
from crossfade.signals._extract import EEGFeatures as EEGFeatures
from crossfade.signals._hamilton import find_beats as find_beats
from crossfade.signals._labels import AnnotationLabels as AnnotationLabels
from crossfade.signals._labels import FilenameLabels as FilenameLabels
from crossfade.signals._labels import TableLabels as TableLabels
from crossfade.signals._labels import matched as matched
from crossfade.signals._mat import load_mat as load_mat
from crossfade.signals._online import OnlineFeatures as OnlineFeatures
from crossfade.signals._online import RawWindows as RawWindows
from crossfade.signals._variability import FEWEST_FOR_SPECTRUM as FEWEST_FOR_SPECTRUM
from crossfade.signals._variability import HIGH as HIGH
from crossfade.signals._variability import LOW as LOW
from crossfade.signals.ecg import heart_features as heart_features
from crossfade.signals.eeg import BANDS as BANDS
from crossfade.signals.eeg import BandPower as BandPower
from crossfade.signals.eeg import average_reference as average_reference
from crossfade.signals.eeg import band_pass as band_pass
from crossfade.signals.recordings import Annotation as Annotation
from crossfade.signals.recordings import open_recording as open_recording
from crossfade.signals.recordings import plain_name as plain_name
from crossfade.signals.windows import cut_windows as cut_windows
