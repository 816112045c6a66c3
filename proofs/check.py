"""Compile the proofs from nothing, and say what every theorem rests on.

python proofs/check.py              compile, then print the axioms of each theorem
python proofs/check.py --kernel     and let coqchk, a second and smaller checker, read the result
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent
STATEMENTS = ("Theorems", "Bridge")
"""The files whose theorems are the result; the others hold lemmas."""
REAL_NUMBERS = frozenset(
    {
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
    }
)
"""What Coq's standard library assumes to build the real numbers. Nothing else may be assumed."""
UNPROVEN = re.compile(
    r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|bypass_check|type_in_type)\b"
)


class ProofError(Exception):
    """A proof that does not compile, or rests on what it may not."""


def files() -> list[str]:
    """The names of the proofs' files, each after those that it needs."""
    lines = (SOURCE / "_CoqProject").read_text(encoding="utf-8").split()
    return [line for line in lines if line.endswith(".v")]


def run(folder: Path, *command: str) -> str:
    """What one of Coq's programs prints, or the error that it ends with."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"{' '.join(command)} fails:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compile_file(folder: Path, name: str) -> str:
    """What Coq prints while it compiles one file of a folder."""
    return run(folder, "coqc", "-q", "-Q", ".", "Tacit", name)


def compile_all(folder: Path) -> None:
    """Copy the sources to an empty folder and compile them there, in order."""
    listed = files()
    unlisted = {path.name for path in SOURCE.glob("*.v")} - set(listed)
    if unlisted:
        raise ProofError(f"_CoqProject must list {', '.join(sorted(unlisted))}.")
    for name in listed:
        text = (SOURCE / name).read_text(encoding="utf-8")
        if UNPROVEN.search(text):
            raise ProofError(f"{name} must prove what it says, without {UNPROVEN.search(text)}.")
        shutil.copyfile(SOURCE / name, folder / name)
    for name in listed:
        compile_file(folder, name)


def theorems() -> list[str]:
    """The names of all theorems that are results."""
    texts = [(SOURCE / f"{name}.v").read_text(encoding="utf-8") for name in STATEMENTS]
    return re.findall(r"^Theorem (\w+)", "\n".join(texts), flags=re.MULTILINE)


def ask(folder: Path, commands: str) -> str:
    """What Coq answers, where the proofs were compiled, with their results in scope."""
    imports = f"From Tacit Require Import Formulas {' '.join(STATEMENTS)}.\n"
    libraries = "Require Import QArith List. Import ListNotations.\n"
    (folder / "Question.v").write_text(imports + libraries + commands, encoding="utf-8")
    return compile_file(folder, "Question.v")


def everything() -> str:
    """One Coq definition, `everything`, that has all results in it."""
    names = theorems()
    pairs = " ".join(f"(conj (@{name})" for name in names)
    return f"Definition everything := {pairs} I{')' * len(names)}.\n"


def axioms(folder: Path, names: list[str]) -> dict[str, frozenset[str]]:
    """The axioms that each of these rests on, as Coq lists them."""
    marks = [f'Goal True. idtac "@{name}". Abort. Print Assumptions {name}.' for name in names]
    blocks = ask(folder, everything() + "\n".join(marks)).split("@")[1:]
    if [block.splitlines()[0].strip() for block in blocks] != names:
        raise ProofError("Coq did not answer for every theorem.")
    named = re.compile(r"^([\w.]+\.[\w.]+)(?=\s*:|\s*$)", flags=re.MULTILINE)
    listed = {
        name: frozenset(named.findall(block)) for name, block in zip(names, blocks, strict=True)
    }
    for name, block in zip(names, blocks, strict=True):
        if not listed[name] and "Closed under the global context" not in block:
            raise ProofError(f"Coq's answer for {name} is not understood:\n{block}")
    return listed


def check(folder: Path) -> None:
    """Compile everything in an empty folder; nothing may rest on an unexpected axiom."""
    compile_all(folder)
    unexpected = axioms(folder, ["everything"])["everything"] - REAL_NUMBERS
    if unexpected:
        raise ProofError(f"Some theorem rests on {', '.join(sorted(unexpected))}.")


def check_kernel(folder: Path) -> str:
    """Coq's second checker reads the compiled files, and the standard library under them."""
    modules = [f"Tacit.{name}" for name in STATEMENTS]
    return run(folder, "coqchk", "-silent", "-o", "-Q", ".", "Tacit", *modules)


def report(folder: Path, *, kernel: bool) -> None:
    """Check the proofs, then print each theorem with its axioms."""
    check(folder)
    for name, needed in axioms(folder, theorems()).items():
        print(f"{name}: {', '.join(sorted(needed)) or 'no axiom'}")
    print(f"{len(theorems())} theorems in {len(files())} files; no axiom beyond the real numbers'.")
    if kernel:
        print(check_kernel(folder))


def main() -> None:
    """Print the report, or the sentence that says what is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kernel", action="store_true", help="also run coqchk, about a minute")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            report(Path(folder), kernel=arguments.kernel)
        except ProofError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
