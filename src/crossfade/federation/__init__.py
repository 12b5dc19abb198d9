r"""One prior from many sites by a secure sum: files only, and nobody sees one site's share.

All parts of a prior are sums over people, so that the prior of all sites is the sum of theirs. Each
of n sites has a vector of such sums :math:`x_i`, as fixed-point numbers modulo :math:`2^{64}`, and
hands over one file, in which it is masked (Bonawitz et al. 2017, section 4):

.. math:: y_i = x_i + \sum_{j > i} m_{ij} - \sum_{j < i} m_{ji} \pmod{2^{64}}, \quad
    m_{ij} = \mathrm{ChaCha20}(k_{ij}), \quad
    k_{ij} = \mathrm{HKDF}(\mathrm{X25519}(a_i, A_j); \text{agreement}, i, j)

Sites i and j alone can compute :math:`m_{ij}`: each from its own secret key and the other's public
one. A single :math:`y_i`, and the sum of any of them but all, is uniform on the residues; in the
sum of all every mask cancels, and :math:`\sum_i y_i = \sum_i x_i` to the last bit.

Four commands, or the functions here. `make_key` makes a site's keys; they serve one round.
`agree` fixes who takes part, features, scale and classes, and its digest goes into every mask.
`mask` writes a site's file, signed (Ed25519), and erases the secret key before. `sum_masked` adds
the files up, whoever runs it, and checks what can be checked of a sum.

Who learns what: whoever has all masked files learns the sum over all sites, and nothing else. A
site can subtract its own part, and n - 1 sites together learn that of the last, which no secure sum
can prevent: there are three sites at least. Where a file is missing, the others stay noise, and a
new round begins with new keys. There we depart from the paper, in which a server recovers the masks
of sites that drop out, and a second mask protects those that it wrongly takes for such.

References
----------
Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal and Seth (2017), Practical
secure aggregation for privacy-preserving machine learning. CCS 2017, 1175-1191.
"""

from crossfade.federation._agreement import Agreement, agree
from crossfade.federation._keys import Site, make_key
from crossfade.federation._masked import mask, sum_masked
from crossfade.federation._scale import read_scale, write_scale

__all__ = [
    "Agreement",
    "Site",
    "agree",
    "make_key",
    "mask",
    "read_scale",
    "sum_masked",
    "write_scale",
]
