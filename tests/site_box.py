"""A folder with checks of a site's own, for tests."""

from __future__ import annotations

from pathlib import Path

MEASUREMENT = """
[[measurement]]
names = ["{name}"]
per = "machine"
unit = "s"
what = "seconds of something"

[measurement.limit]
high = 1.0
basis = "a second is enough"

[measurement.advice]
symptom = "It is slow at this site."
causes = [
    {{ what = "the network", tell = "other nodes are slow too" }},
    {{ what = "the disk", tell = "others are not" }},
]
next = "ping -c 3 example.org"
shows = "no loss"
vendor = "nothing"
"""
FAMILY = 'title = "site_*"\nis_not = "anything else"\n' + MEASUREMENT
CHECK = '''import pytest


@pytest.mark.costs(1)
@pytest.mark.measures("{name}")
def test_{function}(check):
    """Something of the site is fast enough."""
    {body}
'''


def family(name: str) -> str:
    """A TOML file with one measurement."""
    return FAMILY.format(name=name)


class SiteBox:
    """A folder that only this user can write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)

    def write(self, name: str, content: str) -> Path:
        """Write a file; gives its path."""
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        path.chmod(0o600)
        return path

    def check(self, stem: str, body: str | None = None, function: str = "fast") -> None:
        """A file with one check of `site_<stem>`, and its TOML file."""
        name = f"site_{stem}"
        told = body if body is not None else f'check("{name}", 0.5)'
        self.write(f"{stem}.py", CHECK.format(name=name, function=function, body=told))
        self.write(f"{stem}.toml", family(name))

    def wrong(self, stem: str, old: str, new: str, end: str = ".py") -> None:
        """The same with one thing wrong."""
        self.check(stem)
        path = self.folder / f"{stem}{end}"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
