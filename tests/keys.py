"""Keys of OpenSSH, and runs' statements signed with them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from acceptance.reports import verdict_json
from acceptance.run import signature


def made_key(path: Path, passphrase: str = "") -> Path:
    """A private key; the public one lies beside it."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "box@lab", "-f", str(path)]
    subprocess.run(argv, check=True)
    return path


def sign(verdict: Path, content: bytes, key: Path, machine: str | None = None) -> None:
    """Sign a verdict beside its file as `rigproof sign` does, of that machine if it is named."""
    file = verdict_json.read(content)
    statement = (
        f"rigproof evidence 1\nrun {file.run_id}\n"
        f"machine {machine or file.provenance['machine_id']}\n"
        f"evidence {'0' * 64}\nverdict.json {hashlib.sha256(content).hexdigest()}\n"
    ).encode()
    (verdict.parent / signature.STATEMENT).write_bytes(statement)
    (verdict.parent / signature.SIGNATURE).write_bytes(signature.sign_text(statement, key))
