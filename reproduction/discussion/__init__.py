"""What the paper's Discussion suggests, tried: ``python -m reproduction.discussion [TABLE]``.

Three extensions of the blend, each a short module, beside the library's hierarchical blend. Every
person is left out in turn and labels a few consecutive windows. The results are in the README of
the folder above: people are of one kind, single sources gain nothing, and pairs lose.
"""
