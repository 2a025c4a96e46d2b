"""Who besides this user and root may write a file or folder, and so could change what is read
from it.
"""

from __future__ import annotations

import os
import stat

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user(uid: int) -> str:
    """The name of a user, or the number where it has none."""
    import pwd  # only for a message

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def other_owner(found: os.stat_result) -> str | None:
    """The owner, by name, where that is neither this user nor root."""
    return None if found.st_uid in (0, os.geteuid()) else user(found.st_uid)


def others_may_write(found: os.stat_result, *, above: bool = False) -> bool:
    """Whether the group or everyone may write it.

    In a folder `above` what matters, the sticky bit (as /tmp has it) keeps others from replacing
    what is not theirs.
    """
    return bool(found.st_mode & _OTHERS) and not (above and bool(found.st_mode & stat.S_ISVTX))
