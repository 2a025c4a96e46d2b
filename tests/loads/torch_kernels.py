"""Every kernel of ours becomes machine code for every architecture: run in the image by
tests/containers/test_torch_loads.py.
"""

from __future__ import annotations

import pytest

from acceptance.loads import card
from acceptance.loads.program import LoadError

EM_CUDA = 190  # the machine of the ELF header
KERNELS = sorted(path.stem for path in card.FOLDER.glob("*.cu"))


def test_there_are_kernels() -> None:
    assert KERNELS == ["collective", "compare", "copy", "fault", "pulse", "vram"]


@pytest.mark.parametrize(
    "capability", card.ARCHITECTURES, ids=lambda pair: f"sm_{pair[0]}{pair[1]}"
)
@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles(name: str, capability: tuple[int, int]) -> None:
    cubin_of = card.compile_cubin(name, capability)
    assert cubin_of.startswith(b"\x7fELF")
    assert int.from_bytes(cubin_of[18:20], "little") == EM_CUDA


def test_what_cannot_be_compiled_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "source", lambda name: "this is no C")
    with pytest.raises(
        LoadError, match=r"^NVRTC cannot compile odd\.cu for compute capability 9\.0: .*error"
    ):
        card.compile_cubin("odd", (9, 0))
