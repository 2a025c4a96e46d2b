from __future__ import annotations

import cases
import pytest

from acceptance.core import version


@cases.each(
    "described, expected",
    [
        ("v0.2.0-0-g0123456789ab\n", "0.2.0"),
        ("v0.2.0-5-g0123456789ab", "0.2.1.dev5+g0123456789ab"),
        ("v0.2.0-0-g0123456789ab-dirty", "0.2.1.dev0+g0123456789ab.changes"),
        ("v1.10.9-12-g0123456789ab-dirty", "1.10.10.dev12+g0123456789ab.changes"),
        ("v1.0.0rc1-0-g0123456789ab", "1.0.0rc1"),
        ("v1.0.0rc1-3-g0123456789ab", "1.0.0rc2.dev3+g0123456789ab"),
        ("0123456789ab0123456789ab", "0.0.0.dev7+g0123456789ab"),
        ("0123456789ab-dirty", "0.0.0.dev7+g0123456789ab.changes"),
    ],
)
def test_the_version_of_a_checkout(described: str, expected: str) -> None:
    assert version.of_checkout(described, "7\n") == expected


@cases.each(
    "described, expected",
    [
        ("v0.2.0-0-g0123456789abcdef\n", "0123456789abcdef"),
        ("v1.2.3-x-5-g0123456789abcdef-dirty", "0123456789abcdef+changes"),
        ("0123456789abcdef", "0123456789abcdef"),
        ("0123456789abcdef-dirty", "0123456789abcdef+changes"),
        ("", None),
        ("v1.2.3", None),
    ],
)
def test_the_commit_of_a_checkout(described: str, expected: str | None) -> None:
    assert version.commit_of(described) == expected


@pytest.mark.parametrize(
    ("described", "commits"),
    [("", "7"), ("v1.2.x-0-g0123456789ab", "7"), ("v1.2-1-g01", "7"), ("0123456789ab", "many")],
)
def test_another_text_is_no_version(described: str, commits: str) -> None:
    with pytest.raises(ValueError, match=r"a tag of a release has the form v1\.2\.3"):
        version.of_checkout(described, commits)


def test_the_harness_in_an_image_has_the_version_of_its_release() -> None:
    assert version.of_image("0.2.0") == "0.2.0"
    assert version.of_image("1.0.0rc2.dev3+g0123456789ab.changes") == "1.0.0rc2.dev0"
    assert version.of_image(version.UNKNOWN) == "0.0.0.dev0"
