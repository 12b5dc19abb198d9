"""The paper, reproduced: every figure and number, by the text and as its authors ran it.

H. S. Helm, A. de Silva, J. T. Vogelstein, C. E. Priebe and W. Yang, "Approximately Optimal Domain
Adaptation with Fisher's Linear Discriminant", Mathematics 12(5), 746 (2024),
doi 10.3390/math12050746. ``make reproduce`` runs everything and writes one page.

The paper's formulas are written out in `algorithm`, in plain NumPy and apart from the library, so
that each can check the other. The authors did not run what they print. Every function therefore
takes a recipe: "printed" is the text, formula by formula; "authors" is what they ran, found by
trying departures from the text until their figures came out; "right" is what the library does.
`README.md` lists the departures.
"""

#: The recipes in which the paper's numbers are checked.
RECIPES = ("printed", "authors")
