"""Numbers at the edge of what a double holds: answers or refusals, and never NaN."""

import numpy as np
import pytest

from crossfade import PosteriorBlendClassifier, choose_alpha, load_model, save_model


@pytest.mark.parametrize("strength", [1e7, 1e50, 1e300])
@pytest.mark.parametrize("shrinkage", ["oas", None])
def test_a_huge_strength_leaves_the_person_alone(make_prior, make_target, strength, shrinkage):
    X, y = make_target(n_each=(2, 1))
    options = {"shrinkage": shrinkage}
    blend = PosteriorBlendClassifier(make_prior(), strength=strength, **options).fit(X, y)
    alone = PosteriorBlendClassifier(make_prior(), strength=np.inf, **options).fit(X, y)
    if shrinkage is not None:
        # The pseudo-inverse knows nothing of directions without variance: there the crowd stays.
        np.testing.assert_allclose(blend.projection_, alone.projection_, atol=1e-5)
    assert np.isfinite(blend.coef_).all()


@pytest.mark.parametrize("n_each", [(2, 2), (40, 40)])
@pytest.mark.parametrize("strength", ["auto", 1.0, 1e3, 1e5, 1e9])
def test_alpha_never_exceeds_one(make_prior, make_target, n_each, strength):
    X, y = make_target(n_each=n_each)
    for isotropic in (False, True):
        prior = make_prior(isotropic=isotropic)
        assert 0.0 <= PosteriorBlendClassifier(prior, strength=strength).fit(X, y).alpha_ <= 1.0


def test_a_covariance_that_cannot_be_inverted_is_refused(make_prior):
    words = "covariance is too small to be inverted: its largest eigenvalue is 1e-320. Rescale"
    with pytest.raises(ValueError, match=words):
        choose_alpha(make_prior(), half_gap=np.ones(4), covariance=1e-320 * np.eye(4), n_samples=10)


def test_a_saved_rule_says_what_it_tells_apart(make_target, tmp_path):
    X, y = make_target()
    save_model(
        PosteriorBlendClassifier().fit(X, np.array(["rest", "task"])[y]), tmp_path / "m.json"
    )
    assert (
        repr(load_model(tmp_path / "m.json"))
        == "SavedRule(classes 'rest' and 'task', n_features=4)"
    )
