"""What a `check` replaces and removes: what an earlier one wrote, and nobody changed since."""

from pathlib import Path

import pytest

from conformance.core.errors import WrongUsage
from conformance.core.output_file import OtherContent
from conformance.own_job.answer_folder import SUMS, AnswerFolder


def answered(folder: Path, job: str, *names: str) -> set[str]:
    """Answer for a job as `check` does; the names of the files that are then there."""
    looked_at = AnswerFolder.looked_at(folder, job)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{job}: {name}")
    looked_at.keep([folder / name for name in names[:1]], complete=False)
    looked_at.keep([folder / name for name in names], complete=True)
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} - {SUMS}


@pytest.mark.parametrize(
    ("job", "name"),
    [
        ("src/job.py", "job.yaml"),
        ("src/job.py", "src.job.yaml"),
        ("src/job.py", "query-2/job-2.yaml"),
        ("job.sql", "job.yaml"),
        ("acme.jobs:build", "acme.jobs.build.yaml"),
        ("com.acme.Job", "com.acme.Job.yaml"),
        ("job.py", "verdict.html"),
        ("job.py", "query-1/results.jsonl"),
    ],
)
@pytest.mark.parametrize("written", [False, True])
def test_a_file_of_the_user_or_edited_by_the_user_is_refused(
    tmp_path: Path, job: str, name: str, written: bool
) -> None:
    if written:
        answered(tmp_path, job, name)
        AnswerFolder.looked_at(tmp_path, job)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("# my own")
    with pytest.raises(OtherContent, match=f"{name} exists and is not what `check` wrote there, unchanged"):
        AnswerFolder.looked_at(tmp_path, job)
    assert (tmp_path / name).read_text() == "# my own"


def test_nothing_of_an_earlier_job_is_left_but_what_was_edited(tmp_path: Path) -> None:
    earlier = ("query-1/a-1.yaml", "query-1/results.jsonl", "query-2/a-2.yaml", "query-2/results.jsonl")
    (tmp_path / "notes.yaml").write_text("mine")
    assert answered(tmp_path, "a.py", *earlier) == {*earlier, "notes.yaml"}
    (tmp_path / "query-2" / "a-2.yaml").write_text("edited")
    kept = {"notes.yaml", "query-2/a-2.yaml"}
    assert answered(tmp_path, "job.py", "job.yaml", "results.jsonl") == {"job.yaml", "results.jsonl", *kept}
    assert not (tmp_path / "query-1").exists()
    # Each query is noted when it is answered: a run that ends after the first leaves a folder that the next one may use.
    AnswerFolder.looked_at(tmp_path, "job.py").keep([tmp_path / "job.yaml"], complete=False)
    AnswerFolder.looked_at(tmp_path, "job.py")


def test_sums_that_lead_elsewhere_remove_nothing(tmp_path: Path) -> None:
    folder, digest = tmp_path / "check", "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    folder.mkdir()
    for file in (tmp_path / "a.yaml", folder / "Makefile"):
        file.write_text("foo")
    (folder / SUMS).write_text(f"{digest}  ../a.yaml\n{digest}  Makefile\n")
    assert answered(folder, "job.py", "job.yaml") == {"job.yaml", "Makefile"}
    assert (tmp_path / "a.yaml").exists()


def test_a_place_that_can_be_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WrongUsage, match="file is a file: give --output another folder, new or not"):
        AnswerFolder.looked_at(tmp_path / "file" / "below", "job.py")
