"""One task in, one unit vector out: Fisher's linear discriminant, and how noisy it is."""

from crossfade.fisher._discriminant import FisherDiscriminant

__all__ = ["FisherDiscriminant"]

for _name in __all__:
    globals()[_name].__module__ = __name__
