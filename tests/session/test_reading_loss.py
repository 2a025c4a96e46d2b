from __future__ import annotations

import pytest

from acceptance.core.parts import Part
from acceptance.session.check import loss, refuse
from acceptance.wording.errors import WordedError


def test_nothing_lost_is_nothing_said() -> None:
    refuse(())


def test_every_loss_is_named() -> None:
    told = {"a": None, "b": "w"}
    disks = [loss(Part("disk", name), "disk_growth", why) for name, why in told.items()]
    with pytest.raises(WordedError) as caught:
        refuse(disks)
    found = [one for one in caught.value.message.values["why"]]  # type: ignore[union-attr]
    assert [one.values["component"] for one in found] == ["disk:a", "disk:b"]  # type: ignore[union-attr]
    assert [one.values["why"].values for one in found] == [  # type: ignore[union-attr]
        {"what": "disk_growth"},
        {"what": "disk_growth", "why": "w"},
    ]
