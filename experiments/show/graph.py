"""The model as a graph, the paper's Figure 1: what is drawn from what, and what is seen."""

from typing import Any, NamedTuple


class Node(NamedTuple):
    """A quantity: where it stands, what it is called, and whether the analyst sees it."""

    x: float
    y: float
    label: str
    seen: bool = False


NODES = {
    "theta": Node(3.0, 3.0, r"$\theta$"),
    "sigma": Node(4.2, 3.0, r"$\sigma^2$"),
    "features": Node(1.2, 3.0, r"$\Sigma$"),
    "gram": Node(1.2, 1.8, r"$S_j$"),
    "moment": Node(3.6, 1.8, r"$z_j$"),
    "noisy gram": Node(1.2, 0.6, r"$\hat S_j$", seen=True),
    "noisy moment": Node(3.6, 0.6, r"$\hat z_j$", seen=True),
}
ARROWS = (
    ("features", "gram"),
    ("gram", "moment"),
    ("theta", "moment"),
    ("sigma", "moment"),
    ("gram", "noisy gram"),
    ("moment", "noisy moment"),
)
LAWS = {
    (-0.1, 3.0): r"$\Sigma \sim IW(\Lambda, \kappa)$",
    (5.0, 3.25): r"$\theta \sim N(m, C)$",
    (5.0, 2.8): r"$\sigma^2 \sim IG(a, b)$",
    (-0.1, 1.8): r"$S_j \sim W(\Sigma, n_j)$",
    (5.0, 1.8): r"$z_j \sim N(S_j\theta, \sigma^2 S_j)$",
    (-0.1, 0.6): r"$\hat S_j = S_j +$ noise",
    (5.0, 0.6): r"$\hat z_j = z_j +$ noise",
}
RADIUS = 0.3


def model_figure() -> Any:  # noqa: ANN401 - matplotlib has no types of its own
    """Parameters above, a plate of J holders below; what is seen is grey."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tacit", "font.size": 10}):
        figure = Figure(figsize=(8.2, 3.9), layout="constrained")
        axis = figure.subplots()
        axis.set(xlim=(-1.8, 7.1), ylim=(-0.3, 3.7), aspect="equal")
        axis.axis("off")
        axis.add_patch(Rectangle((-1.75, 0.05), 8.8, 2.25, fill=False, color="grey"))
        axis.text(6.95, 0.12, "holders $j = 1, \\ldots, J$", ha="right", color="grey")
        for node in NODES.values():
            colour = "lightgrey" if node.seen else "white"
            axis.add_patch(Circle((node.x, node.y), RADIUS, facecolor=colour, edgecolor="black"))
            axis.text(node.x, node.y, node.label, ha="center", va="center")
        for start, end in ARROWS:
            one = NODES[start]
            other = NODES[end]
            axis.add_patch(
                FancyArrowPatch(
                    (one.x, one.y),
                    (other.x, other.y),
                    arrowstyle="-|>",
                    mutation_scale=12,
                    shrinkA=18,
                    shrinkB=18,
                    color="black",
                )
            )
        for (x, y), law in LAWS.items():
            axis.text(x, y, law, ha="right" if x < 0 else "left", va="center", fontsize=9)
    return figure
