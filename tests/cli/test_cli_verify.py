"""Signing a run with OpenSSH's own keys, and what a verification says of every change."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import journals
import pytest
from command import Call, assert_refused, printed
from keys import made_key
from runs import machine_root, write_segment

from acceptance.cli import machine_test
from acceptance.journal import reader, run_folder
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.notify import notices
from acceptance.process.deadline import Deadline
from acceptance.reports import verdict_json
from acceptance.run import outputs, signature

pytestmark = pytest.mark.tools


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return made_key(tmp_path / "key")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return made_run(tmp_path)


def made_run(tmp_path: Path, value: float | None = None) -> Run:
    """A sealed run with its files; `value` is measured in place of the first passing value."""
    folder = tmp_path / "runs/run-1"
    plan = journals.plan()
    due = plan.checks[0].due[0]
    values = None if value is None else {(due.measurement, due.component): value}
    bodies = journals.bodies(plan, values)
    write_segment(folder / reader.SUPERVISOR, bodies, machine_root(tmp_path / "root"), seals=True)
    found = journal_run.read(folder)
    outputs.write(found)
    return found


def test_a_signed_run_is_verified(run: Run, key: Path, tmp_path: Path) -> None:
    signature.sign(run, key)
    found = signature.verify(run.folder)
    assert (found.run_id, found.machine_id) == (run.start.run_id, run.start.machine_id)
    assert (found.evidence, found.signer, found.whole) == (run.seal.digest, None, True)
    assert found.key.startswith("ED25519 SHA256:")
    assert signature.verify(run.folder, key.with_suffix(".pub")).signer == "key.pub"


@pytest.mark.parametrize(
    ("line", "signer", "why"),
    [
        ('lab@example.org namespaces="rigproof" {key}', "lab@example.org", ""),
        ("!bob@lab,*@lab {key}", "!bob@lab,*@lab", ""),
        ('"a b@lab" {key}', "a b@lab", ""),
        ('lab valid-before="20200101" {key}', None, "signers:2: key has expired"),
        ('lab namespaces="git" {key}', None, "signers:2: key is not permitted"),
        ("  {key}", None, "signers:2: invalid key"),
        ("!bob@lab {key}", None, ""),
    ],
)
def test_a_signer_is_named_as_in_the_file_or_it_is_said_why_it_is_none(
    run: Run, key: Path, tmp_path: Path, line: str, signer: str | None, why: str
) -> None:
    signature.sign(run, key)
    signers = tmp_path / "signers"
    signers.write_text("\n" + line.format(key=key.with_suffix(".pub").read_text()))
    if signer is None:
        assert_not_verified(run.folder, f"is not accepted for any.*{tmp_path}/{why}", signers)
    else:
        assert signature.verify(run.folder, signers).signer == signer


def test_what_comes_after_the_signature_is_no_evidence(run: Run, key: Path) -> None:
    (run.folder / "logs").mkdir()
    signature.sign(run, key)
    verdict = run.folder / run_folder.VERDICT
    assert (
        notices.start(["/bin/cat"], verdict, "FAIL", run.folder, "FAIL: gpu0", Deadline.after(10.0))
        is None
    )
    outputs.write(run)
    assert (run.folder / notices.LOG).read_bytes() == verdict.read_bytes()
    assert signature.verify(run.folder).whole


def test_a_verdict_alone_is_verified(run: Run, key: Path, tmp_path: Path) -> None:
    signature.sign(run, key)
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in (run_folder.VERDICT, signature.STATEMENT, signature.SIGNATURE):
        (alone / name).write_bytes((run.folder / name).read_bytes())
    assert not signature.verify(alone, key.with_suffix(".pub")).whole
    (alone / reader.TELEMETRY).touch()
    assert_not_verified(alone, "the seal names it")


def assert_not_verified(folder: Path, said: str, signers: Path | None = None) -> None:
    with pytest.raises(signature.SignatureError) as error:
        signature.verify(folder, signers)
    assert re.search(said, str(error.value))


def _replaced(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        data = (folder / name).read_bytes()
        assert old in data
        (folder / name).write_bytes(data.replace(old, new, 1))

    return change


def _dangling(folder: Path) -> None:
    (folder / reader.SUPERVISOR).unlink()
    (folder / reader.SUPERVISOR).symlink_to("nowhere")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_replaced("verdict.json", b"PASS", b"FAIL"), "is not the verdict that was signed"),
        (_replaced(signature.STATEMENT, b"run-1", b"run-2"), "does not fit the statement"),
        (_replaced(signature.SIGNATURE, b"A", b"B"), "does not fit the statement"),
        (_replaced(reader.SUPERVISOR, b"link.copy", b"link.copx"), "journal.jsonl"),
        (lambda folder: (folder / run_folder.VERDICT).unlink(), "cannot be read"),
        (_dangling, "journal.jsonl is missing"),
        (lambda folder: (folder / reader.SUPERVISOR).write_bytes(b""), "holds 0 beginnings"),
        (_replaced(reader.SUPERVISOR, b"{", b"["), "is not the head"),
        (lambda folder: (folder / "telemetry-gpu.jsonl").touch(), "is not of this run"),
    ],
    ids=[
        "verdict",
        "statement",
        "signature",
        "evidence",
        "verdict gone",
        "link",
        "empty",
        "damaged",
        "evidence added",
    ],
)
def test_what_was_changed_is_named(
    run: Run, key: Path, change: Callable[[Path], None], said: str
) -> None:
    signature.sign(run, key)
    change(run.folder)
    assert_not_verified(run.folder, said)


def test_somebody_else_is_not_the_signer(run: Run, key: Path, tmp_path: Path) -> None:
    signature.sign(run, key)
    signers = made_key(tmp_path / "other").with_suffix(".pub")
    assert_not_verified(run.folder, r"any signer in .*: No principal matched\.", signers)
    assert_not_verified(run.folder, "cannot be read", tmp_path / "nobody")


def test_a_signature_for_another_purpose_is_none(run: Run, key: Path) -> None:
    signature.sign(run, key)
    path = run.folder / signature.STATEMENT
    (run.folder / signature.SIGNATURE).unlink()
    argv = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", "file", str(path)]
    subprocess.run(argv, check=True)
    assert_not_verified(run.folder, "does not fit")


def test_a_key_that_cannot_sign_is_told_before_a_run(tmp_path: Path) -> None:
    with pytest.raises(signature.SignatureError, match="cannot sign"):
        signature.require(tmp_path / "nowhere")
    locked = made_key(tmp_path / "locked", "secret")
    with pytest.raises(signature.SignatureError, match="without a passphrase"):
        signature.require(locked)
    signature.require(made_key(tmp_path / "open"))


def test_a_run_without_a_seal_is_not_signed(tmp_path: Path, key: Path) -> None:
    folder = tmp_path / "runs/run-1"
    write_segment(
        folder / reader.SUPERVISOR,
        journals.bodies(journals.plan()),
        machine_root(tmp_path / "root"),
    )
    with pytest.raises(signature.SignatureError, match="its evidence is incomplete"):
        signature.sign(journal_run.read(folder), key)


def test_the_verb(run: Run, key: Path, call: Call) -> None:
    folder = str(run.folder)
    code, out, _ = call("verify", folder)
    assert (code, "is not signed" in out) == (3, True)
    assert call("verify", f"{folder}/none")[0] == 2
    out = printed(call("sign", folder, "--key", str(key)))
    assert out.splitlines()[-1] == f"{folder}/{signature.SIGNATURE}"
    out = printed(call("verify", folder, "--signer", f"{key}.pub"))
    lines = out.splitlines()
    assert (
        lines[0] == f"PASS: run run-1 on machine machine-1, evidence {run.seal.digest}: as signed"
    )
    assert lines[1].startswith("signed by key.pub with the key ED25519 SHA256:")
    assert lines[2] == "verdict.json and the evidence are those that were signed"
    _replaced("verdict.json", b"PASS", b"FAIL")(run.folder)
    code, out, _ = call("verify", folder)
    assert (code, "is not the verdict that was signed" in out) == (1, True)
    assert "不是签名的那份结论" in call("verify", folder, "--lang", "zh-CN")[1]


def test_a_verdict_that_the_evidence_does_not_give_is_not_signed(run: Run, key: Path) -> None:
    _replaced("verdict.json", b"PASS", b"FAIL")(run.folder)
    with pytest.raises(signature.SignatureError, match="is not what this rigproof makes"):
        signature.sign(run, key)
    assert not (run.folder / signature.STATEMENT).exists()


def test_a_signed_verdict_of_no_word_is_not_held(
    run: Run, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_json, "render", lambda _: b"{}")
    (run.folder / run_folder.VERDICT).write_bytes(b"{}")
    signature.sign(run, key)
    assert_not_verified(run.folder, "cannot be told")


@pytest.mark.parametrize(("value", "verdict", "code"), [(300.0, "PASS", 3), (1.0, "FAIL", 1)])
def test_the_verdict_is_shown_where_the_key_is_gone_at_the_end(
    tmp_path: Path,
    key: Path,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    value: float,
    verdict: str,
    code: int,
) -> None:
    run = made_run(tmp_path, value)

    def tested(*_: object) -> Run:
        key.unlink()
        key.with_suffix(".pub").unlink()
        return run

    monkeypatch.setattr(machine_test, "run_test", tested)
    found, out, err = call("accept", "--sign", str(key))
    assert (found, err.count("\n")) == (code, 1)
    assert f"\n{verdict}" in out
    assert err.startswith(f"rigproof: the run is not signed: {key} cannot sign")
    assert f"'rigproof sign {run.folder} --key {key}' signs it" in err
    made_key(key)
    found, out, _ = call("sign", str(run.folder), "--key", str(key))
    assert (found, out.splitlines()[0][:5]) == (0, f"{verdict}:")


def test_a_wrong_key_is_a_usage_error(tmp_path: Path, call: Call) -> None:
    assert_refused(
        call("accept", "--sign", str(tmp_path / "none")), 2, "cannot sign", "give a private key"
    )
