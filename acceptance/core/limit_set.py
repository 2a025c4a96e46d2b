"""The limits that a run was planned with: version, digest, and the sheets of the site. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from acceptance.core.limit import Limit
from acceptance.core.parts import Component


class SiteSheet(msgspec.Struct, frozen=True):
    """A GPU or disk sheet of the site.

    `file` is its path in the site's folder ("models/x.toml"), `text` its whole content with the
    SHA-256 `sha256`, so that sessions and reports use the very sheet of the plan. `replaces` says
    that it stands in for rigproof's own sheet of that model.
    """

    file: str
    model: str
    sha256: str
    text: str
    replaces: bool


class LooserLimit(msgspec.Struct, frozen=True):
    """A limit that is looser by the site's sheets than by rigproof's own.

    Of `kind` "ceiling" it is the most that is possible. `limit` is None where there is none any
    more.
    """

    measurement: str
    component: Component
    kind: Literal["limit", "ceiling"]
    own: Limit
    limit: Limit | None = None


class LimitSet(msgspec.Struct, frozen=True):
    """All that limits come from, but for the machine file, in one run.

    `version` is that of rigproof's own limits, `digest` the SHA-256 over these and the `sheets` of
    the site, which are from `folder`.
    """

    version: str
    digest: str
    folder: str | None = None
    sheets: tuple[SiteSheet, ...] = ()
    looser: tuple[LooserLimit, ...] = ()
