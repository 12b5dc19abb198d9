"""The person and the prior that ``crossfade live --demo`` plays."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from crossfade import HierarchicalBlendClassifier, load_mental_math
from crossfade.datasets import load_live_demo, read_eegmat
from crossfade.signals import OnlineFeatures

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def demo():
    return load_live_demo()


def features_of(demo, label):
    online = OnlineFeatures(demo.prior.recipe, filtered=True)
    return np.stack([one.features for one in online.push(demo.segments[label])])


def test_the_demo_plays_a_person_who_is_not_in_its_prior(demo):
    recipe = demo.prior.recipe
    assert (recipe.filter, recipe.kind, recipe.channels) == (
        "causal",
        "log-powers",
        ("Fz", "Cz", "Pz"),
    )
    assert demo.prior.n_tasks == 35
    assert demo.prior.class_names == ("rest", "arithmetic")
    assert {label: data.shape for label, data in demo.segments.items()} == {
        0: (3, 90_000),
        1: (3, 30_000),
    }
    assert demo.prior.feature_names == recipe.feature_names


def test_the_demo_learns(demo):
    rest, arithmetic = (features_of(demo, label) for label in (0, 1))
    assert (len(rest), len(arithmetic)) == (72, 24)
    X, y = np.concatenate([rest, arithmetic]), np.repeat([0, 1], [72, 24])
    few = np.r_[10:18, 72:80]
    rule = HierarchicalBlendClassifier(demo.prior).fit(X[few], y[few])
    right = np.delete(rule.predict(X) == y, few)
    truth = np.delete(y, few)
    assert np.mean([right[truth == label].mean() for label in (0, 1)]) > 0.75


def test_the_demo_is_what_its_script_makes_of_the_recordings(demo, recordings, tmp_path):
    spec = importlib.util.spec_from_file_location("script", ROOT / "scripts/make_live_demo.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = recordings / "eegmat"
    for label, data in demo.segments.items():
        made = script.samples_of(folder, demo.prior.recipe, label)
        np.testing.assert_allclose(data, made, atol=script.STEP / 2 + 1e-9)
    for path in folder.glob(f"{demo.name}_*.edf"):
        (tmp_path / path.name).symlink_to(path)
    [person] = read_eegmat(tmp_path, features="log-powers", causal=True)
    played = np.concatenate([features_of(demo, label) for label in (0, 1)])
    np.testing.assert_allclose(played, person.X, atol=0.02)
    assert person.name in [task.name for task in load_mental_math()]
