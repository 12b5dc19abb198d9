"""Mathematics as MathML, which browsers draw by themselves: no script, no font from a network.

A renderer for Sphinx (``html_math_renderer = "mathml"``) around `latex2mathml`, which turns one
formula of TeX into a tree. What that library leaves undone is done here:

- a tag, and the number that Sphinx gives a labelled equation, stand at the right margin, since
  MathML Core has no labelled rows;
- relations, names of functions, and bars that open or close say what they are, on which their
  spacing depends;
- limits of sums and minima stand below them where there is room;
- long formulas in a line of text come in pieces, so that the line may be broken after a sign;
- columns are aligned by style, since MathML Core has no other way.

A formula that does not convert, or of which any TeX is left, is a warning that names its place;
``make docs`` takes warnings for errors.
"""

import html
import re
from xml.etree.ElementTree import Element, SubElement, tostring

from docutils import nodes
from latex2mathml.converter import Converter
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

#: What the library does not know, in what it knows.
REWRITTEN = {
    r"\\arg(?![a-zA-Z])": r"\\operatorname{arg}",
    r"\\cfrac(?![a-zA-Z])": r"\\dfrac",
    r"\\(begin|end)\{(?:aligned|split|align|gather|gathered)\}": r"\\\1{align*}",
    r"\\(?:begin|end)\{equation\*?\}": "",
    r"\\label\{[^}]*\}": "",
}
#: Bars that open and close travel through the library as private characters.
BARS = {
    r"\lvert": ("\ue000", "|", "prefix"),
    r"\rvert": ("\ue001", "|", "postfix"),
    r"\lVert": ("\ue002", "‖", "prefix"),
    r"\rVert": ("\ue003", "‖", "postfix"),
}
#: How many parts an element has by the standard.
PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2}
PARTS |= {"msubsup": 3, "munderover": 3}
TOKENS = {"mi", "mo", "mn", "mtext"}
#: The relation, where the library has the tilde of a keyboard.
SIMILAR = "\u223c"
#: Signs between two terms that the library takes for variables.
BETWEEN = set("±∓×∝≪≫→←∈⊗")
SIGNS = set("+-−±∓")
#: Signs whose limits stand below and above them.
WITH_LIMITS = {"∑", "∏", "min", "max", "sup", "inf", "lim"}
BELOW = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
#: After these a line of text may be broken, if the formula has more signs than this.
BREAKS = set("=<>≤≥≠≈∝→∈≪≫,;") | SIGNS | {SIMILAR}
LONG = 12
THIN = "0.1667em"

TAG = re.compile(r"\\tag\{([^}]*)\}")


class FormulaError(ValueError):
    """A formula that cannot be shown as it is meant."""


def to_tree(tex, display="inline"):
    """One formula as a `math` element; FormulaError where any of it is left as TeX."""
    source = tex.strip()
    for pattern, replacement in REWRITTEN.items():
        source = re.sub(pattern, replacement, source)
    for command, (sign, _bar, _form) in BARS.items():
        source = re.sub(re.escape(command) + "(?![a-zA-Z])", sign, source)
    try:
        tree = Converter(display=display).convert_to_element(source)
    except Exception as error:
        raise FormulaError(f"{type(error).__name__} {error}".strip()) from error
    for element in tree.iter():
        _name_what_it_is(element)
    _refuse_what_is_left(tree)
    for element in tree.iter():
        _set_limits_and_spaces(element)
    return tree


def _name_what_it_is(element):
    """Text without entities in tokens without parts; operators that are called so."""
    if element.tag in TOKENS and len(element):
        # \mathrel{+} and its like: a token has text, and no parts.
        element.text = "".join(element.itertext())
        for part in list(element):
            element.remove(part)
    element.text = html.unescape(element.text or "") or None
    text = element.text or ""
    for sign, bar, form in BARS.values():
        if text == sign:
            element.tag, element.text = "mo", bar
            element.attrib |= {"form": form, "stretchy": "false"}
    if element.tag == "mi" and text == "~":
        element.tag, element.text = "mo", SIMILAR
    elif element.tag == "mi" and (text in BETWEEN or (len(text) > 1 and text.isalpha())):
        element.tag = "mo"
    if element.tag == "mtd" and "columnalign" in element.attrib:
        element.set("style", f"text-align: {element.attrib.pop('columnalign')}")


def _refuse_what_is_left(tree):
    """Raise FormulaError for TeX in the text, and for elements that lack a part."""
    for element in tree.iter():
        text = element.text or ""
        if "\\" in text or text == "&":
            raise FormulaError(f"{text} is not known")
        if element.tag in PARTS and len(element) != PARTS[element.tag]:
            raise FormulaError(f"a part is missing ({element.tag} has {len(element)})")


def _core(element):
    """The operator that an element consists of, without its limits and exponents; or None."""
    while element.tag in PARTS and element.tag != "mfrac":
        element = element[0]
    return element if element.tag == "mo" else None


def _opens(element):
    """Whether a parenthesis opens with this element, single or as the first of a group."""
    while element.tag == "mrow" and len(element):
        element = element[0]
    return element.tag == "mo" and element.text in set("([{|‖") and element.get("form") != "postfix"


def _closes(element):
    """Whether a parenthesis closes with this element, whatever its exponents."""
    operator = _core(element)
    return operator is not None and (
        operator.text in set(")]}!") or operator.get("form") == "postfix"
    )


def _set_limits_and_spaces(element):
    """Limits below sums and minima; spaces about functions and signs as in TeX."""
    if element.tag in PARTS and element[0].tag == "mo" and element[0].text in WITH_LIMITS:
        element.tag = BELOW.get(element.tag, element.tag)
        element[0].set("movablelimits", "true")
    children = list(element)
    for place, child in enumerate(children):
        operator = _core(child)
        if operator is None:
            continue
        text = operator.text or ""
        before = next((c for c in reversed(children[:place]) if c.tag != "mspace"), None)
        after = children[place + 1] if place + 1 < len(children) else None
        follows_a_term = before is not None and (_core(before) is None or _closes(before))
        if text == "/":
            operator.attrib |= {"lspace": "0", "rspace": "0"}
        elif text in SIGNS and element.tag in ("mrow", "mtd") and not follows_a_term:
            operator.attrib |= {"form": "prefix", "lspace": "0", "rspace": "0"}
        elif len(text) > 1 and text.isalpha():
            operator.set("lspace", THIN if follows_a_term else "0")
            operator.set("rspace", "0" if after is None or _opens(after) else THIN)


def in_pieces(tree):
    """The tree, or several of them: a line may be broken between any two."""
    [row] = tree
    if sum(element.tag in TOKENS for element in row.iter()) <= LONG:
        return [tree]
    pieces, ended = [], True
    for element in list(row):
        if ended:
            pieces.append(Element("math", tree.attrib))
            current = SubElement(pieces[-1], "mrow")
        current.append(element)
        # A sign that belongs to what follows stays with it.
        ended = element.tag == "mo" and element.text in BREAKS and element.get("form") != "prefix"
        if ended:
            # At the end of a piece it would be taken for a sign that follows a term.
            element.set("form", "infix")
    return pieces


def as_markup(tree):
    """The element as it stands on a page."""
    tree.attrib.pop("xmlns", None)
    return tostring(tree, encoding="unicode")


def _warn(writer, node, error):
    """Warn of a formula, and show it as it was written."""
    logger.warning("This formula has no MathML: %s\n%s", error, node.astext(), location=node)
    writer.body.append(f"<code>{writer.encode(node.astext())}</code>")


def visit_inline(writer, node):
    """Write a formula in a line of text."""
    writer.body.append(writer.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    try:
        writer.body.append("<wbr>".join(map(as_markup, in_pieces(to_tree(node.astext())))))
    except FormulaError as error:
        _warn(writer, node, error)
    writer.body.append("</span>")
    raise nodes.SkipNode


def visit_block(writer, node):
    """Write a formula in a line of its own, with its tag or number at the right."""
    tex = node.astext()
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate nohighlight"))
    writer.body.append('<div class="formula">')
    for part in re.split(r"\n\s*\n", TAG.sub("", tex).strip()):
        # Lines without an environment, as Sphinx's directive takes them.
        lines = r"\\" in part and r"\begin{" not in part
        try:
            formula = rf"\begin{{align*}}{part}\end{{align*}}" if lines else part
            writer.body.append(as_markup(to_tree(formula, display="block")))
        except FormulaError as error:
            _warn(writer, node, error)
    writer.body.append("</div>")
    if node.get("number"):
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, _("Link to this equation"))
        writer.body.append("</span>")
    for tag in TAG.findall(tex):
        anchor = nodes.make_id(f"equation-{tag}")
        link = f'<a class="headerlink" href="#{anchor}" title="{_("Link to this equation")}">¶</a>'
        writer.body.append(f'<span class="eqno" id="{anchor}">({writer.encode(tag)}){link}</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
