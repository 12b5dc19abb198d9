"""Transfer learning of pyRiemann and skada as estimators that a study accepts.

``CalibrationStudy(tasks, methods=[("mdwm", Mdwm()), ("coral", Coral())])`` compares them with the
blends. `Mdwm` and `TlCenter` are for tangent vectors at the mean of each session, as
``crossfade features ... --features tangent`` makes them.
"""

import math

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

_TARGET = "target"


class _OnMatrices(ClassifierMixin, BaseEstimator):
    """Classifier of pyRiemann for tangent vectors; the group of the last row is the target."""

    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def fit(self, X, y, groups):
        """Fit to the windows of the sources and to the labelled ones of the target."""
        from pyriemann.transfer import encode_domains

        # Labels and domains are numbers: pyRiemann joins their names by a slash, and splits there.
        self.classes_, label = np.unique(y, return_inverse=True)
        domain = np.unique(groups, return_inverse=True)[1].astype("<U20")
        domain[groups == groups[-1]] = _TARGET
        # pyRiemann passes weights to its steps by name, as it was done before metadata routing.
        with config_context(enable_metadata_routing=False):
            self.rule_ = self._rule().fit(*encode_domains(_matrices(X), label, domain))
        return self

    def predict(self, X):
        """Classes of the target's windows."""
        return self.classes_[self.rule_.predict(_matrices(X)).astype(int)]

    def predict_proba(self, X):
        """Probabilities of the classes."""
        return self.rule_.predict_proba(_matrices(X))


class Mdwm(_OnMatrices):
    """Minimum distance to means between those of all sources together and those of the target."""

    def __init__(self, domain_tradeoff=0.5):
        self.domain_tradeoff = domain_tradeoff

    def _rule(self):
        from pyriemann.transfer import MDWM

        return MDWM(self.domain_tradeoff, _TARGET)


class TlCenter(_OnMatrices):
    """Matrices of each person centred, those of the target by its labelled windows; then LDA."""

    def _rule(self):
        from pyriemann.tangentspace import TangentSpace
        from pyriemann.transfer import TLCenter, TLClassifier

        equal = np.full(len(self.classes_), 1.0 / len(self.classes_))
        lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=equal)
        rule = make_pipeline(TangentSpace(metric="riemann"), lda)
        return make_pipeline(TLCenter(_TARGET), TLClassifier(_TARGET, rule))


class Coral(ClassifierMixin, BaseEstimator):
    """Each person standardised, the sources given the target's covariance, logistic regression.

    Classes are numbers from 0 on, and a label of -1 is skada's mask of a window without one.
    """

    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012

    def fit(self, X, y, sample_domain):
        """Fit to the windows of the sources (positive domains) and of the target."""
        # skada turns on metadata routing for everybody when it is imported.
        with config_context():
            from skada import CORALAdapter, PerDomain, make_da_pipeline
        self.classes_ = np.unique(y[y >= 0])
        self.target_ = sample_domain.min()
        shown = {"mask_target_labels": False}
        self.pipeline_ = make_da_pipeline(
            PerDomain(StandardScaler(), **shown),
            CORALAdapter(),
            LogisticRegression(max_iter=1000, class_weight="balanced"),
            **shown,
        )
        with config_context(enable_metadata_routing=True):
            self.pipeline_.fit(X, y, sample_domain=sample_domain)
        return self

    def predict(self, X):
        """Classes of the target's windows."""
        return self._of_target("predict", X)

    def predict_proba(self, X):
        """Probabilities of the classes."""
        return self._of_target("predict_proba", X)

    def _of_target(self, name, X):
        domain = np.full(len(X), self.target_)
        with config_context(enable_metadata_routing=True):
            return getattr(self.pipeline_, name)(X, sample_domain=domain)


def _matrices(vectors):
    """Covariances (n, c, c) of tangent vectors (n, c (c + 1) / 2) at the identity."""
    from pyriemann.utils.tangentspace import untangent_space

    n_channels = (math.isqrt(8 * vectors.shape[1] + 1) - 1) // 2
    return untangent_space(np.asarray(vectors), np.eye(n_channels))
