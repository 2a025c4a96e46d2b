"""The signature of a run: made and checked by OpenSSH (`ssh-keygen -Y`); no cryptography of ours.

Signed is a statement of five lines: the format, the run, the machine, the digest of the evidence,
and the SHA-256 of verdict.json. A verdict can be verified with it where the evidence is elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.message import Message, english
from acceptance.journal import reader, run_folder, seal
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.journal.segment import JournalError
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError, WordedUserError

STATEMENT, SIGNATURE = "evidence.txt", "evidence.txt.sig"
NAMESPACE = "rigproof"  # a signature for another purpose is none for this one
PROGRAM, PACKAGE = "ssh-keygen", "openssh-client"
_FORM = re.compile(
    r"rigproof evidence 1\nrun (?P<run>[^\n]+)\nmachine (?P<machine>[^\n]+)\n"
    r"evidence (?P<evidence>[0-9a-f]{64})\nverdict\.json (?P<verdict>[0-9a-f]{64})\n"
)
_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+")
_MADE_BY = re.compile(r"with (\S+) key (SHA256:\S+)")
_SECONDS = 60.0  # a key in an agent may ask its owner


class NotSigned(WordedError):
    """The folder has no signature."""


class SignatureError(WordedUserError):
    """A run cannot be signed, or its signature does not fit."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What a signature vouches for.

    `verdict` is the word in verdict.json. `key` is the key's type and fingerprint, `signer` its
    names in the file of signers, None without one. `whole` says whether the evidence was there and
    was held against its digest too.
    """

    verdict: str
    run_id: str
    machine_id: str
    evidence: str
    key: str
    signer: str | None
    whole: bool


class _VerdictFile(msgspec.Struct):
    """verdict.json of any version, as far as it is read here."""

    verdict: str


def statement(run: Run) -> str:
    """What is signed.

    Raises SignatureError for a run that has no whole seal, or whose verdict.json is another one
    than the evidence gives.
    """
    from acceptance.reports import verdict_json  # only for who signs

    if run.seal.digest is None or run.troubles:
        raise SignatureError(
            english(
                "nothing_to_sign",
                "{run} cannot be signed: its evidence is incomplete (`rigproof judge RUN` names "
                "the files); restore them, or run the test again",
            ),
            run=run.start.run_id,
        )
    verdict = _verdict(run.folder)
    if verdict != verdict_json.render(run):
        path = str(run.folder / run_folder.VERDICT)
        raise SignatureError(
            english(
                "verdict_not_of_evidence",
                "{path} is not what this rigproof makes of the evidence: `rigproof report {run}` "
                "makes it again, then sign it",
            ),
            path=path,
            run=str(run.folder),
        )
    told = f"run {run.start.run_id}\nmachine {run.start.machine_id}\nevidence {run.seal.digest}"
    return f"rigproof evidence 1\n{told}\nverdict.json {_sha256(verdict)}\n"


def require(key: Path) -> None:
    """Sign something of no meaning, so that a key that cannot sign is reported before a run.

    Raises SignatureError, and ProgramMissing without ssh-keygen.
    """
    sign_text(b"rigproof: can this key sign?\n", key)


def sign(run: Run, key: Path) -> Path:
    """Write the statement of a run and its signature; returns the signature.

    Raises SignatureError, JournalError where a file cannot be written, and ProgramMissing.
    """
    text = statement(run).encode("utf-8")
    made = sign_text(text, key)
    for name, content in ((STATEMENT, text), (SIGNATURE, made)):
        run_folder.write_whole(
            run.folder / name, content, then=Message(english("sign_again", "sign it"))
        )
    return run.folder / SIGNATURE


def verify_file(path: Path, signers: Path | None = None) -> str:
    """Hold the signature beside a file (its name and `.sig`) against it; returns who signed.

    `signers` is as in `verify`. Raises SignatureError, and ProgramMissing without ssh-keygen.
    """
    key = _key_of(path)
    return key if signers is None else _signer(path, signers)


def sign_text(text: bytes, key: Path) -> bytes:
    """The signature of a text. Raises SignatureError, and ProgramMissing without ssh-keygen."""
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder) / STATEMENT, Path(folder) / SIGNATURE
        path.write_bytes(text)
        argv = (command.find(PROGRAM, PACKAGE), "-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE)
        done = command.run((*argv, str(path)), deadline=Deadline.after(_SECONDS))
        if done.returncode != 0 or not made.is_file():
            raise SignatureError(
                english(
                    "cannot_sign",
                    "{key} cannot sign[: {why}]: give a private key of OpenSSH without a "
                    "passphrase, or one whose agent runs (`ssh-add`)",
                ),
                key=str(key),
                why=done.last_lines(3),
            )
        return made.read_bytes()


def verify(folder: Path, signers: Path | None = None) -> Signed:
    """Hold the signature of a run against its verdict, and its evidence where that is there.

    `signers` is a file of OpenSSH's public keys, or of allowed signers (ssh-keygen(1)). Raises
    NoRun, NotSigned, and SignatureError for everything that does not fit.
    """
    if not is_signed(folder):
        if not any((folder / name).exists() for name in (reader.SUPERVISOR, run_folder.VERDICT)):
            reader.read(folder)  # which says that no run is there
        raise NotSigned(
            english(
                "not_signed",
                "{folder} is not signed: it has no {statement} with {signature}; `rigproof sign "
                "RUN --key KEY` signs a run",
            ),
            folder=str(folder),
            statement=STATEMENT,
            signature=SIGNATURE,
        )
    found = verify_verdict(folder, signers)
    if not seal.evidence(folder):
        return found
    _hold(folder, found.run_id, found.machine_id, found.evidence)
    return replace(found, whole=True)


def is_signed(folder: Path) -> bool:
    """Whether a folder has a statement and its signature."""
    return (folder / STATEMENT).is_file() and (folder / SIGNATURE).is_file()


def verify_verdict(
    folder: Path, signers: Path | None = None, verdict: bytes | None = None
) -> Signed:
    """Hold the signature in a folder against a verdict; evidence beside it is not looked at.

    `verdict` is the content of verdict.json; None reads it from the folder. Raises SignatureError
    for everything that does not fit.
    """
    path = folder / STATEMENT
    key = _key_of(path)
    signer = None if signers is None else _signer(path, signers)
    text = regular_file.read(path, regular_file.SMALL_RECORD).decode("utf-8", "replace")
    found = _FORM.fullmatch(text)
    if found is None:
        raise SignatureError(
            english(
                "strange_statement",
                "{path} is signed, and is no statement of this rigproof: verify it with the "
                "version that wrote it",
            ),
            path=str(path),
        )
    content = _verdict(folder) if verdict is None else verdict
    if _sha256(content) != found["verdict"]:
        raise SignatureError(
            english(
                "verdict_differs",
                "{path} is not the verdict that was signed: it was changed or replaced",
            ),
            path=str(folder / run_folder.VERDICT),
        )
    try:
        word = msgspec.json.decode(content, type=_VerdictFile).verdict
    except msgspec.DecodeError as error:
        raise SignatureError("verdict_untold", run=found["run"], why=str(error)) from error
    return Signed(word, found["run"], found["machine"], found["evidence"], key, signer, False)


def _hold(folder: Path, run_id: str, machine_id: str, evidence: str) -> None:
    if not (folder / reader.SUPERVISOR).exists():
        missing = Message("evidence_missing", {"file": reader.SUPERVISOR})
        raise SignatureError(
            english("evidence_not_whole", "the evidence is not what was signed: {why}"), why=missing
        )
    try:
        run = journal_run.read(folder)
    except JournalError as error:
        raise SignatureError("evidence_not_whole", why=error.message) from error
    if run.troubles:
        raise SignatureError("evidence_not_whole", why=run.troubles)
    told = (run.start.run_id, run.start.machine_id, run.seal.digest)
    if told != (run_id, machine_id, evidence):
        raise SignatureError("evidence_of_another_run", run=run.start.run_id)


def _key_of(path: Path) -> str:
    """The type and fingerprint of the key that signed the statement, whoever owns it."""
    done = _keygen(path, ("check-novalidate", "-s", f"{path}.sig"))
    made_by = _MADE_BY.search(done.stdout)
    if done.returncode != 0 or made_by is None:
        raise SignatureError(
            english(
                "signature_does_not_fit",
                "{path} does not fit the statement beside it: one of them was changed[ ({why})]",
            ),
            path=f"{path}.sig",
            why=done.last_lines(3),
        )
    return f"{made_by[1]} {made_by[2]}"


def read_signers(file: Path) -> str:
    """The content of a file of allowed signers, or of public keys. Raises SignatureError."""
    try:
        return regular_file.read(file, regular_file.SMALL_RECORD).decode("utf-8", "replace")
    except OSError as error:
        raise SignatureError(
            english(
                "signers_unread",
                "{path} cannot be read ({why}): give a public key of OpenSSH, or a file of "
                "allowed signers",
            ),
            path=str(file),
            why=error.strerror,
        ) from error


def _signer(path: Path, signers: Path) -> str:
    """The names of the signer in a file of allowed signers, or of public keys, as they stand there.

    They are patterns and may exclude somebody (`!bob@lab,*@lab`).
    """
    text = read_signers(signers)
    with tempfile.TemporaryDirectory() as folder:
        allowed = Path(folder) / "signers"
        allowed.write_text(_allowed(text.splitlines(), signers.name), encoding="utf-8")
        given = ("-s", f"{path}.sig", "-f", str(allowed))
        done = _keygen(path, ("find-principals", *given))
        names = done.stdout.replace(",", "\n").split("\n")[:-1]  # a name in a line, or all in one
        if one := next((name for name in names if not name.startswith("!")), None):
            done = _keygen(path, ("verify", *given, "-I", one))
        if one is None or done.returncode != 0:
            why = done.last_lines(3).replace(str(allowed), str(signers)).replace("\n", "; ")
            raise SignatureError(
                english(
                    "signer_not_accepted",
                    "the signature is not accepted for any signer in {path}[: {why}]",
                ),
                path=str(signers),
                why=why,
            )
    return ",".join(names)


def _allowed(lines: Sequence[str], name: str) -> str:
    """Allowed signers; a line that is a public key is one of the file's own name."""
    owner = re.sub(r"[^\w.@-]", "_", name, flags=re.ASCII) or "signer"
    made = (f"{owner} {line}" if _KEY.match(line) else line for line in lines)
    return "".join(f"{line}\n" for line in made)


def _keygen(path: Path, told: Sequence[str]) -> command.ProgramResult:
    verb, *more = told
    argv = (command.find(PROGRAM, PACKAGE), "-Y", verb, "-n", NAMESPACE, *more)
    env = {**os.environ, "LC_ALL": "C"}
    return command.run(argv, deadline=Deadline.after(_SECONDS), stdin=path, env=env)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _verdict(folder: Path) -> bytes:
    """The content of verdict.json."""
    path = folder / run_folder.VERDICT
    try:
        return regular_file.read(path, regular_file.SMALL_RECORD)
    except OSError as error:
        raise SignatureError(
            english("signed_verdict_unread", "{path} cannot be read ({why})"),
            path=str(path),
            why=error.strerror,
        ) from error


def described(found: Signed) -> tuple[Message, ...]:
    """What was verified, in lines."""
    run = {"verdict": found.verdict, "run": found.run_id}
    values = {**run, "machine": found.machine_id, "evidence": found.evidence}
    by = {"key": found.key} if found.signer is None else {"key": found.key, "signer": found.signer}
    return (
        Message(
            english(
                "signed_run",
                "{verdict}: run {run} on machine {machine}, evidence {evidence}: as signed",
            ),
            values,
        ),
        Message(
            english("signed_by", "signed by {signer} with the key {key}")
            if found.signer
            else english(
                "signed_by_unknown",
                "signed with the key {key}; `--signer FILE` checks whose key it is",
            ),
            by,
        ),
        Message(
            english("evidence_held", "verdict.json and the evidence are those that were signed")
            if found.whole
            else english(
                "evidence_elsewhere",
                "verdict.json is the one that was signed; the evidence is not here, and was not "
                "looked at",
            )
        ),
    )
