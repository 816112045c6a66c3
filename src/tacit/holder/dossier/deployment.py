"""Third chapter: how it runs, who is trusted with what, and what the holder must see to."""

from tacit.holder.dossier.blocks import Blank, Block, Chapter, Paragraph, Points, Section
from tacit.holder.dossier.subject import Subject
from tacit.page.numbers import listed
from tacit.study import Study, words

QUESTIONS = (
    "On which legal basis, and with whose consent, were the rows collected?",
    "Who can read the table, the ledger and the signing key, and on which machine do they lie?",
    "How long are table, ledger and releases kept?",
    "Does any other release, table or publication speak of the same persons?",
    "Whom can a person in the table turn to?",
)
"""What neither study nor ledger knows."""


def deployment(subject: Subject) -> Chapter:
    """From the question to the machine it runs on."""
    return Chapter(
        "Deployment",
        (
            Section("Query model", _queries(subject)),
            Section("Trust model", _trust(subject.study)),
            Section("Implementation", _implementation(subject)),
            Section("Security and access control", _security()),
            Section("Data collection", _collection()),
        ),
    )


def by_hand(subject: Subject) -> Chapter:
    """What only the holder can say."""
    stated = {"Who holds the rows": ", ".join(subject.curators), "Purpose": subject.purpose}
    said = tuple(Paragraph(f"{name}: {value}.") for name, value in stated.items() if value)
    open_ones = tuple(Blank(f"{name}?") for name, value in stated.items() if not value)
    blanks = tuple(map(Blank, QUESTIONS))
    return Chapter(
        "What only the holder can say",
        (
            Section(
                "To be filled in",
                (
                    *said,
                    Paragraph("Neither the study nor the ledger can know the following."),
                    *open_ones,
                    *blanks,
                ),
            ),
        ),
    )


def _queries(subject: Subject) -> tuple[Block, ...]:
    answers = sum(charge.is_used for charge in subject.own_charges)
    times = {0: "has not been answered yet", 1: "was answered once"}.get(
        answers, f"was answered {answers} times, each paid for"
    )
    return (
        Paragraph(
            "Not interactive. The question is the study, fixed and agreed on beforehand; its "
            "SHA-256 hash travels in each release, so that two parties hold the same study "
            f"exactly when they hold the same hash ({subject.study.hash}). From data set "
            f"“{subject.dataset}” it {times}. A further question is a new study, read and paid "
            "for by itself; the ledger refuses one that does not fit the limit."
        ),
    )


def _trust(study: Study) -> tuple[Block, ...]:
    if study.secure_sum is not None:
        names = list(study.secure_sum.holders)
        return (
            Paragraph(
                f"Central at each holder, distributed between them. {listed(names)} add up their "
                "sums under masks, and the server learns the total alone. Each adds a share of "
                f"the noise; the guarantee holds while at least {study.secure_sum.least} of them "
                f"stay to the end, of whom at most {study.secure_sum.colluding} tell the server "
                "what they know. It needs holders that are real, separate and have checked each "
                "other's keys."
            ),
        )
    return (
        Paragraph(
            "Central at each holder: who holds the rows is trusted with them, and adds the noise "
            "before anything leaves. The analyst, other holders, any server between them and the "
            "public are not trusted; they see releases alone."
        ),
    )


NOISE = (
    "Discrete Gaussian noise is drawn exactly, by OpenDP (Canonne, Kamath and Steinke 2020), from "
    "the operating system's secure generator, on a lattice that is public. No floating-point "
    "artefact of it depends on the rows (Mironov 2012), and there is no seed."
)
SUMS = (
    "Sums are whole numbers and are added without rounding, in any order, so the sensitivity holds "
    "for what is computed, not only for what is meant."
)
ORDER = (
    "All that can fail is tried before the charge, and the charge is on disk before noise is drawn."
)
TIMING = "Time and memory depend on the size of the table; they are not hidden."


def _implementation(subject: Subject) -> tuple[Block, ...]:
    reasons = words.telling(subject.study)
    refusals = "No value makes a refusal, so that none can tell of rows."
    if reasons:
        refusals = (
            f"The holder refuses to publish for {listed(reasons, 'or')}. That it was refused tells "
            "something of the rows, if it becomes known."
        )
    messages = "Messages and logs name columns and rules, never values."
    return (Points((NOISE, SUMS, ORDER, f"{messages} {refusals}", TIMING)),)


SECURITY = (
    "Rows stay where they lie; nothing is sent anywhere by publishing, which writes one file.",
    (
        "The ledger is a file of the holder's. Charges are a hash chain with a witness beside it: "
        "one that was changed, or put back from an older copy, publishes nothing until that is "
        "mended."
    ),
    (
        "A release can be signed (Ed25519), so that nobody publishes in the holder's name; the key "
        "is the holder's to keep."
    ),
    "Encryption at rest, accounts, backups and physical access are the holder's own.",
)


def _security() -> tuple[Block, ...]:
    return (Points(SECURITY),)


def _collection() -> tuple[Block, ...]:
    return (
        Paragraph(
            "Differential privacy begins when the study is computed. It protects nobody from how "
            "the rows were collected, stored or used before, or from other uses of them."
        ),
    )
