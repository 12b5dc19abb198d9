"""MOABB's own evaluation of the recordings of Mental Math: blends beside LDA.

    python scripts/moabb_eegmat.py FOLDER [--features shares] [--labelled 0.2] [--all-channels]

FOLDER holds eegmat 1.0.0 of PhysioNet. Prints each pipeline's mean AUC over the participants, and
its gain over the person's own LDA (with automatic shrinkage, and scikit-learn's default) and over
pooled LDA, with the standard error of the difference over people.
"""

import argparse
import tempfile

import moabb
import numpy as np
from moabb.evaluations import CrossSubjectEvaluation
from moabb.paradigms import MotorImagery
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline as plain_pipeline

import crossfade as cf
from crossfade.moabb import EegMat, make_pipeline
from crossfade.signals.eeg import BandPower

KINDS = {
    "shares": {"relative": True, "log": False},
    "clr": {"relative": True, "log": True},
    "log-powers": {"relative": False, "log": True},
}


class Own(ClassifierMixin, BaseEstimator):
    """A classifier that learns from the target's labelled windows alone."""

    __metadata_request__fit = {"X_target_labeled": True, "y_target_labeled": True}  # noqa: RUF012

    def __init__(self, rule):
        self.rule = rule

    def fit(self, X, y, X_target_labeled=None, y_target_labeled=None):
        """Learn from the target."""
        if len(np.unique(y_target_labeled)) < 2:
            # scikit-learn's LDA would take it, and its scores would mean nothing.
            raise SystemExit("Somebody has labels of one class only, and so no LDA of their own.")
        self.rule_ = clone(self.rule).fit(X_target_labeled, y_target_labeled)
        self.classes_ = self.rule_.classes_
        return self

    def decision_function(self, X):
        """Scores of windows."""
        return self.rule_.decision_function(X)

    def predict(self, X):
        """Labels of windows."""
        return self.rule_.predict(X)


def main():
    """Evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--features", choices=KINDS, default="log-powers")
    parser.add_argument("--labelled", type=float, default=0.2)
    parser.add_argument("--all-channels", action="store_true", help="instead of Fz, Cz and Pz")
    options = parser.parse_args()
    moabb.set_log_level("error")
    power = BandPower(500.0, **KINDS[options.features])
    shrunk = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    pipelines = {
        "hierarchical": make_pipeline(power, cf.HierarchicalBlendClassifier()),
        "posterior": make_pipeline(power, cf.PosteriorBlendClassifier()),
        "convex": make_pipeline(power, cf.ConvexBlendClassifier()),
        "own LDA": make_pipeline(power, Own(shrunk)),
        "default LDA": make_pipeline(power, Own(LinearDiscriminantAnalysis())),
        "pooled LDA": plain_pipeline(power, shrunk),
    }
    paradigm = MotorImagery(
        events=["rest", "arithmetic"],
        n_classes=2,
        fmin=None,
        fmax=None,
        channels=None if options.all_channels else ["Fz", "Cz", "Pz"],
    )
    with tempfile.TemporaryDirectory() as folder:
        scores = CrossSubjectEvaluation(
            paradigm=paradigm,
            datasets=[EegMat(options.folder)],
            cv_kwargs={"calibration_size": options.labelled, "calibration_labeled": True},
            hdf5_path=folder,
        ).process(pipelines)
    table = scores.pivot_table("score", "subject", "pipeline")
    channels = "all channels" if options.all_channels else "Fz, Cz, Pz"
    print(f"{len(table)} people, {options.features} of {channels}, {options.labelled:.0%} labelled")
    others = [name for name in pipelines if name.endswith("LDA")]
    print(f"{'':14}{'AUC':>6}" + "".join(f"{'over ' + name:>20}" for name in others))
    for name in pipelines:
        line = f"{name:14}{table[name].mean():6.3f}"
        for other in others:
            gap = table[name] - table[other]
            error = gap.std() / np.sqrt(len(gap))
            text = "" if name == other else f"{gap.mean():+.3f} ± {error:.3f}"
            line += f"{text:>20}"
        print(line)


if __name__ == "__main__":
    main()
