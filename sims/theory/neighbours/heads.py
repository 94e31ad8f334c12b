"""What a layer's output leaves open of its heads: degrees of freedom, gates, recovery, gauges.

``Z = Σ_h Y_h W_h`` with Y_h (n × d_k) and W_O = [W_1; …; W_H] (H d_k × d) of rank q. *Open* are the
directions in which heads may move while Z stays.
"""


def open_jointly(n: int, heads: int, width: int, rank: int) -> int:
    """``n(H d_k − q)``: of all heads at once, Y_h free; ``n(H−1)d_k`` if and only if q = d_k.

    Gates that are not zero, ``z_i = Σ_h g_ih y_ih W_h``, leave it as it is: they are a bijection of
    each token's heads.
    """
    return n * (heads * width - rank)


def open_alone(n: int, width: int, rank: int, others: int) -> int:
    """``n(d_k − q + q_{−h})``: of one head, q_{−h} the rank of W_O without its rows.

    A plain sum of heads, all W_h one matrix, leaves all of it: n d_k.
    """
    return n * (width - rank + others)


def output_rank(kind: str, heads: int, width: int, dimension: int) -> int:
    """q of W_O: ``min(H d_k, d)`` if generic, ``min(d_k, d)`` if one matrix is repeated."""
    return min(heads * width if kind == "generic" else width, dimension)


def open_shared_content(heads: int, width: int, gate_rank: int) -> int:
    """``d_k(H − rank G)``: heads common to all tokens, y_ih = y_h, G the gates (n × H), plain sum.

    Without gates rank G is 1.
    """
    return width * (heads - gate_rank)


def open_parametric(heads: int, dimension: int, width: int, rank: int) -> int:
    """``d_k(H d − rank[D_1A_1X, …, D_HA_HX])``: Y_h = A_h X V_h with only V_h unknown, plain sum.

    D_h = diag(g_·h) are the gates.
    """
    return width * (heads * dimension - rank)


def parametric_rank(attention: str, gated: bool, n: int, heads: int, dimension: int) -> int:
    """``rank[D_1A_1X, …, D_HA_HX]`` at generic X and gates.

    Args:
        attention: ``generic`` matrices A_h, ``equal`` ones (generic), or ``uniform`` (all 1/n).
        gated: whether gates differ by head and token; without them D_h = I.
        n: tokens.
        heads: H.
        dimension: d.
    """
    own = 1 if attention == "uniform" else min(n, dimension)
    copies = heads if gated or attention == "generic" else 1
    return min(n, copies * own)


def gate_share(heads: int, dimension: int, positions: int | None = None) -> float:
    """Parameters of gates over those of a square W_O: ``H/d``, which is 1/d_k where H d_k = d.

    Args:
        heads: H.
        dimension: d.
        positions: n_max of a table of one gate a position and head, ``n_max H/d²``; None for gates
            that are functions of the token, U of d × H.
    """
    return (dimension if positions is None else positions) * heads / dimension**2
