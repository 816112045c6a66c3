"""A small table that a house may publish, and what its commands must answer and leave."""

ROWS = """\
age,bmi,sex,admission,days
50,25.5,female,planned,3
61,31,male,emergency,12
70,,female,planned,4
130,22,male,planned,2
"""
SECRET = "SECRET7731"  # noqa: S105

PUBLISH = ("publish", "study.toml", "table.csv", "--holder", "north", "--out", "north.json")


def refused(result):
    """The one sentence of a command that was refused."""
    code, out, err = result
    assert code == 2, (out, err)
    assert out == ""
    assert err.startswith("tacit: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert SECRET not in err
    return err.removeprefix("tacit: ").rstrip("\n")


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def unwrapped(text):
    """Words as they follow each other, whatever the width."""
    return " ".join(text.split())
