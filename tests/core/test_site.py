"""What binds a site's own checks, and their names."""

from __future__ import annotations

import journals
from msgspec.structs import replace

from acceptance.core.fold import fold
from acceptance.core.plan import MEASUREMENT, PREFIX, SUBJECT, SiteChecks, folder_digest
from acceptance.core.record import SessionStarted
from acceptance.expect import measurements
from acceptance.session import context


def test_nothing_shipped_has_the_name_of_a_sites_own() -> None:
    assert not [name for name in measurements.shipped().by_name if name.startswith(PREFIX)]
    assert not (context.SUITES / f"{SUBJECT}.py").exists()
    assert MEASUREMENT.fullmatch("site_mount_read")
    assert not MEASUREMENT.fullmatch("site_")


def test_the_digest_is_of_names_and_contents() -> None:
    digest = folder_digest({"a.py": b"1", "b.toml": b"2"})
    assert digest == folder_digest({"b.toml": b"2", "a.py": b"1"})
    others = ({"a.py": b"1"}, {"a.py": b"2", "b.toml": b"1"}, {"c.py": b"1", "b.toml": b"2"})
    assert digest not in map(folder_digest, others)


def test_a_session_of_other_files_proves_nothing() -> None:
    check = replace(journals.check("site.a.fast"), session="site")
    plan = replace(journals.plan(check), site=SiteChecks("/etc/checks", "right", ()))
    sound = journals.bodies(plan)
    for digest, word in (("right", "PASS"), ("wrong", "UNJUDGED"), (None, "UNJUDGED")):
        told = [
            replace(body, site_digest=digest) if isinstance(body, SessionStarted) else body
            for body in sound
        ]
        verdict = fold(journals.entries(told))
        assert verdict.verdict == word, digest
        codes = [one.code for one in verdict.findings]
        assert codes == ([] if word == "PASS" else ["session_of_another_version"])


def test_a_session_of_ours_has_no_digest_of_a_site() -> None:
    plan = journals.plan(journals.check())
    assert plan.site_digest("site") is None
    with_site = replace(plan, site=SiteChecks("/etc/checks", "right", ()))
    assert (with_site.site_digest("load"), with_site.site_digest("site")) == (None, "right")
