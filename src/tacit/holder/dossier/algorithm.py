"""Second chapter: what is computed, from which public inputs, with how much noise, and its bias."""

from tacit.holder.dossier.blocks import Block, Chapter, Grid, Paragraph, Points, Section
from tacit.holder.dossier.subject import Subject
from tacit.page.numbers import number
from tacit.study import Study, words

PARTS = {
    "xtx_diagonal": "X'X on its diagonal",
    "xtx_off_diagonal": "X'X off its diagonal",
    "xty": "X'y",
    "yty": "y'y",
    "count": "the number of rows",
    "eigenvalue": "the smallest eigenvalue of X'X",
}
"""What is published, as a reader calls it."""


DIVIDED = (
    "The budget is divided, as said above, and each part has noise of its own. What is published "
    "states it, number by number; the parts together keep the guarantee, since the squares of "
    "their μ add up to that of the whole."
)


def algorithm(subject: Subject) -> Chapter:
    """The computation and its noise."""
    study = subject.study
    return Chapter(
        "The algorithm",
        (
            Section("What is computed, and leaves", _leaves(study)),
            Section("Public inputs", _inputs(study)),
            Section("Sensitivity", _sensitivity(study)),
            Section("Noise", _noise(study)),
            Section("Utility", _utility()),
            Section("Bias", _bias(study)),
        ),
    )


def _leaves(study: Study) -> tuple[Block, ...]:
    d = study.d
    square = " and y'y (one number)" if study.response_square else ""
    number = study.response_count
    several = "" if number == 1 else f"; the last for each of {number} responses"
    modelled = study.response.modelled if number == 1 else ", ".join(study.responses)
    return (
        Paragraph(
            f"One linear regression of {modelled}. A holder turns each row into {d} numbers of "
            "public ranges and adds up products: "
            f"X'X ({d * (d + 1) // 2} different numbers), X'y ({d} numbers){square}{several}. "
            "These sums, with noise, the study itself, the holder's name and the receipt of the "
            "charge are one file that a person can read. No row, and nothing else that depends on "
            "rows, leaves."
        ),
        Points(tuple(f"{fact.name}: {fact.sentence}." for fact in words.facts(study))),
    )


def _inputs(study: Study) -> tuple[Block, ...]:
    return (
        Paragraph(
            "Ranges and levels were agreed on before anybody looked at the rows. A value outside "
            "its range is set to the nearer end; none of these bounds is ever read off the data."
        ),
        Grid(
            "Columns that a holder's table must have",
            ("column", "kind", "values"),
            words.inputs(study),
        ),
    )


def _sensitivity(study: Study) -> tuple[Block, ...]:
    mechanism = study.mechanism()
    of_what = "the sums of a first answer" if is_divided(study) else "the weighted sums"
    return (
        Paragraph(
            f"An encoded row is no longer than {study.row_radius:.4g} and its response no larger "
            f"than {study.response_bound:.4g}: {words.shrinking(study)}. So "
            f"{words.neighbours(study)} moves {of_what} by at most "
            f"Δ = {mechanism.sensitivity:.6g} in Euclidean norm."
        ),
        Paragraph(
            "The bound is proven on paper (docs/privacy.md, “Sensitivity”) and by the proof "
            "assistant Coq (proofs/Theorems.v: sensitivity_of_rows, noise_covers, "
            "release_of_rows); the program is compared with the proven values at more than 600 "
            "points (docs/proofs.md)."
        ),
    )


def is_divided(study: Study) -> bool:
    """Whether the budget is spent in several parts, each with noise of its own."""
    return study.visit_count > 1


def _noise(study: Study) -> tuple[Block, ...]:
    if is_divided(study):
        return (Paragraph(DIVIDED),)
    mechanism = study.mechanism()
    lines = tuple((PARTS[part], number(sd)) for part, sd in mechanism.noise.by_part().items())
    return (
        Paragraph(
            f"Each published sum gets independent Gaussian noise of {mechanism.multiplier:.4g} "
            "times Δ, divided by the weight of its part. The multiplier is calibrated with the "
            "exact formula of Balle and Wang (2018, theorem 8), rounded to the private side; it "
            "is not the classical bound, which is looser."
        ),
        Grid(
            "Standard deviation of the noise on each published number, in encoded units",
            ("part", "noise"),
            lines,
        ),
    )


def _utility() -> tuple[Block, ...]:
    return (
        Paragraph(
            "The analyst knows the noise and infers with it: intervals are wider for it, and say "
            "how much of their width privacy causes. `tacit plan` says before anything is "
            "published how wide they will be, `tacit fit` says where nothing could be learnt."
        ),
    )


def _bias(study: Study) -> tuple[Block, ...]:
    return (
        Points(
            (
                (
                    "Statistical: values outside their range are moved to its end, and "
                    f"{words.shrinking(study)}. Where the relation is straight this is harmless; "
                    "where it bends, the line that is estimated weighs such rows less."
                ),
                f"Statistical: {words.missing(study)}.",
                (
                    "Systemic: who is not in the table, or whose values are recorded worse, is not "
                    "represented better by noise. Small groups are drowned by it first."
                ),
                (
                    "Human: intervals speak of the study's model; a reader who drops the interval "
                    "drops the privacy noise with it."
                ),
            )
        ),
    )
