"""What the gallery of tutorials needs beyond its defaults: their order, and our figures.

The figures of `crossfade.plots` do not belong to pyplot, where sphinx-gallery looks for pictures;
they are found among the names of the script instead.
"""

from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

#: The order in which a newcomer meets them.
JOURNEY = ("my_table.py", "my_recordings.py", "my_live_session.py", "my_device.py")
#: A figure of one column of a journal is then as wide as a column of text on a phone.
DPI = 140


def journey(filename):
    """Place of a tutorial in the gallery."""
    return JOURNEY.index(filename)


def figures(block, block_vars, gallery_conf):
    """Save the figures that a block of a tutorial has made, and return the text that shows them."""
    names = block_vars["example_globals"]
    shown = names.setdefault("__shown__", [])
    paths, sharp, texts = [], [], []
    for figure in list(names.values()):
        if isinstance(figure, Figure) and not any(figure is other for other in shown):
            shown.append(figure)
            texts.append(in_words(figure))
            path = Path(next(block_vars["image_path_iterator"]))
            # One for common screens, one for those with twice as many dots.
            twice = path.with_name(f"{path.stem}_2_00x{path.suffix}")
            paths.append(path)
            sharp.append({0: path, 2.0: twice})
            figure.savefig(path, dpi=DPI, bbox_inches="tight")
            figure.savefig(twice, dpi=2 * DPI, bbox_inches="tight")
    return figure_rst(paths, gallery_conf["src_dir"], "; ".join(texts), sharp)


def in_words(figure):
    """What a figure shows, for those who do not see it: its axes and its legends."""
    panels = [
        f"{ax.get_ylabel() or ax.get_title()} against {ax.get_xlabel()}" for ax in figure.axes
    ]
    legends = [*figure.legends, *filter(None, (ax.get_legend() for ax in figure.axes))]
    lines = [text.get_text() for legend in legends for text in legend.get_texts()]
    text = "; ".join(panels) + (f". Lines: {', '.join(lines)}" if lines else "")
    return " ".join(text.split())
