"""Are the estimators scikit-learn's in every respect? Its own checks, with no expected failure."""

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    MulticlassBlend,
    PosteriorBlendClassifier,
)


@parametrize_with_checks(
    [
        FisherDiscriminant(),
        FisherDiscriminant(shrinkage="ledoit_wolf"),
        FisherDiscriminant(shrinkage=None),
        FisherDiscriminant(shrinkage=0.3),
        FisherDiscriminant(shrinkage=1.0, priors=(0.4, 0.6)),
        FisherDiscriminant(feature_scale=None),
        FisherDiscriminant(shrinkage=None, feature_scale=None),
        ConvexBlendClassifier(),
        ConvexBlendClassifier(alphas=np.linspace(0.0, 1.0, 5), shrinkage=None, noise="plus"),
        ConvexBlendClassifier.paper(random_state=0),
        PosteriorBlendClassifier(),
        PosteriorBlendClassifier(strength="risk"),
        PosteriorBlendClassifier(strength=2.0, shrinkage="ledoit_wolf"),
        PosteriorBlendClassifier(on_missing_class="prior"),
        MulticlassBlend(PosteriorBlendClassifier()),
        MulticlassBlend(ConvexBlendClassifier(), strategy="one-vs-rest"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
