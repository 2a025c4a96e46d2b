"""The names that people give to GPU models, in machine files."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from cases import each
from known import known

from acceptance.core.message import Listed, Message, UserError
from acceptance.expect import gpu_limits, gpu_names
from acceptance.expect.sheet import Sheet, plain

SHEETS = gpu_limits.sheets()
H100 = ("NVIDIA H100 NVL", "NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3")
PRO_6000 = (
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
)
ADA_6000 = "NVIDIA RTX 6000 Ada Generation"


@dataclass(frozen=True, slots=True)
class Card:
    """As much of a GPU as its model is known by."""

    model: str | None
    device_id: str | None = None


def meant(name: str, sheets: tuple[Sheet, ...] = SHEETS) -> tuple[str, ...]:
    return tuple(one.nvml_names[0] for one in gpu_names.meant(name, sheets))


def read(name: str, *cards: str | None, sheets: tuple[Sheet, ...] = SHEETS) -> Message | None:
    return gpu_names.read(name, "box.toml, gpu (number 1).model", cards, sheets)


def sheet(name: str, like: str = "GeForce RTX 4090", **changes: object) -> Sheet:
    """A sheet of a site, of a card of another name."""
    base = next(one for one in SHEETS if one.name == like)
    return msgspec.structs.replace(base, **{"name": name, "nvml_names": (name,), **changes})


@each(
    "names, model",
    [
        (
            (
                "4090",
                "RTX4090",
                "rtx-4090",
                "RTX 4090",
                "geforce_rtx_4090",
                "GeForce RTX 4090",
                "nvidia geforce rtx 4090",
                " NVIDIA  GeForce RTX 4090 ",
                "RTX 4090 24GB",
                "RTX 4090 24 GiB GDDR6X",
            ),
            "NVIDIA GeForce RTX 4090",
        ),
        (("3090", "RTX3090"), "NVIDIA GeForce RTX 3090"),
        (("3090 Ti", "3090ti", "RTX3090TI"), "NVIDIA GeForce RTX 3090 Ti"),
        (("H100 SXM", "H100 SXM5", "H100-SXM5-80GB", "H100 SXM 80G"), "NVIDIA H100 80GB HBM3"),
        (("H100 PCIe", "H100-PCIE-80GB", "H100 HBM2e"), "NVIDIA H100 PCIe"),
        (("H100 NVL", "h100nvl", "H100 94GB"), "NVIDIA H100 NVL"),
        (("H200", "H200 SXM", "H200 SXM5", "H200 SXM 141GB"), "NVIDIA H200"),
        (("A100-SXM-80GB", "A100 SXM4 80GB"), "NVIDIA A100-SXM4-80GB"),
        (("A100 80GB PCIe", "A100-PCIE-80GB", "Tesla A100 PCIe 80GB"), "NVIDIA A100 80GB PCIe"),
        (("RTX 6000 Ada", "6000 Ada"), ADA_6000),
        (("A6000", "RTX A6000"), "NVIDIA RTX A6000"),
        (("T4", "NVIDIA T4", "Tesla T4", "NVIDIA Tesla T4"), "Tesla T4"),
        (("RTX PRO 6000 Max-Q",), PRO_6000[0]),
        (("RTX PRO 6000 Workstation",), PRO_6000[2]),
        (("GH200", "GH200 480GB", "GH200 96GB"), "NVIDIA GH200 120GB"),
        (("GB200", "GB200 NVL72"), "NVIDIA GB200"),
        (("L40",), "NVIDIA L40"),
        (("L40S",), "NVIDIA L40S"),
    ],
)
def test_a_name_means_one_model(names: tuple[str, ...], model: str) -> None:
    assert {name: meant(name) for name in names} == dict.fromkeys(names, (model,))


def test_every_name_of_a_sheet_is_its_own() -> None:
    for one in SHEETS:
        for name in (one.name, *one.nvml_names, *one.aliases):
            for text in (name, f"NVIDIA {plain(name)}", name.lower(), name.replace(" ", "")):
                assert gpu_names.meant(text, SHEETS) == (one,), text


@each(
    "name, models",
    [
        ("H100", H100),
        ("H100 80GB", H100[1:]),
        ("A100 40GB", ("NVIDIA A100-PCIE-40GB", "NVIDIA A100-SXM4-40GB")),
        ("RTX 6000", (ADA_6000, *PRO_6000)),
        ("RTX PRO 6000", PRO_6000),
        ("V100 16GB", ("Tesla V100-PCIE-16GB", "Tesla V100-SXM2-16GB")),
    ],
)
def test_a_name_of_several_models_is_never_guessed(name: str, models: tuple[str, ...]) -> None:
    assert meant(name) == models
    with pytest.raises(UserError) as caught:
        read(name, None)
    assert all(model in str(caught.value) for model in models)
    assert not any(
        gpu_names.is_of(name, Card(one), SHEETS)  # type: ignore[arg-type]
        for one in models
    )


@each(
    "name, near",
    [
        ("RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090"),
        ("RTX 4090 D", "NVIDIA GeForce RTX 4090"),
        ("4090D", "NVIDIA GeForce RTX 4090"),
        ("3090 Super", "NVIDIA GeForce RTX 3090 Ti"),
        ("2080", "NVIDIA GeForce RTX 2080 Ti"),
        ("RTX 4O90", "NVIDIA GeForce RTX 4090"),
        ("V100-SXM3-32GB", "Tesla V100-SXM2-32GB"),
        ("A10G", "NVIDIA A10"),
        ("Quadro RTX 6000", ADA_6000),
    ],
)
def test_what_no_sheet_has_is_compared_as_it_stands(name: str, near: str) -> None:
    assert meant(name) == ()
    told = known(read(name))
    assert told.code == "gpu_model_like"
    assert isinstance(told.values["near"], Listed)
    assert told.values["near"].items[0] == near
    assert gpu_names.is_of(name, Card(f"NVIDIA {name}"), SHEETS)  # type: ignore[arg-type]
    assert not gpu_names.is_of(name, Card(near), SHEETS)  # type: ignore[arg-type]


@each("name", ["Radeon", "RTX", "NVIDIA", "-", "Graphics Device"])
def test_what_is_near_to_nothing_names_nothing(name: str) -> None:
    told = known(read(name))
    assert (told.code, "near" in told.values) == ("gpu_model_without_sheet", False)


def test_what_is_said_of_a_name() -> None:
    assert [read(one.nvml_names[0]) for one in SHEETS] == [None] * len(SHEETS)
    for name in ("4090", "GeForce RTX 4090"):
        told = known(read(name, "NVIDIA GeForce RTX 4090" if name == "4090" else None))
        assert (told.code, told.values["model"]) == (
            "gpu_model_read",
            Listed(("NVIDIA GeForce RTX 4090",)),
        )
    told = known(read("H200"))
    assert (told.code, told.values["others"]) == (
        "gpu_model_first_of",
        Listed(("NVIDIA H200 NVL",)),
    )
    # what a card of this machine is called needs no word: a draft has it
    assert read("GeForce RTX 4090", "GeForce RTX 4090") is None
    assert read("NVIDIA GeForce RTX 4080", None, "NVIDIA GeForce RTX 4080") is None
    assert read("NVIDIA H100", "NVIDIA H100") is None


CARD = "10de:2684"


@each(
    "name, card, same",
    [
        ("4090", Card("NVIDIA GeForce RTX 4090", CARD), True),
        ("4090", Card("GeForce RTX 4090", CARD), True),
        ("4090", Card("NVIDIA GeForce RTX 4090"), True),
        ("4090", Card("NVIDIA GeForce RTX 4090", "10de:ffff"), True),  # its id has a key of its own
        ("4090", Card("NVIDIA GeForce RTX 4090 D", CARD), False),
        ("4090", Card("NVIDIA GeForce RTX 3090", "10de:2204"), False),
        ("4090", Card(None, CARD), False),
        ("NVIDIA GeForce RTX 4090", Card("GeForce RTX 4090", CARD), True),
        ("GeForce RTX 4090", Card("nvidia geforce RTX  4090", CARD), True),
        ("GH200", Card("NVIDIA GH200 480GB"), True),
        ("NVIDIA GH200 120GB", Card("NVIDIA GH200 480GB"), False),  # of NVML's names each is one
        ("H200", Card("NVIDIA H200 NVL"), False),
        ("Radeon", Card("Radeon"), True),
        ("Radeon", Card("NVIDIA Radeon"), True),
    ],
)
def test_a_card_is_held_against_the_model_that_is_meant(name: str, card: Card, same: bool) -> None:
    assert gpu_names.is_of(name, card, SHEETS) is same  # type: ignore[arg-type]


def test_a_sheet_of_the_site_counts_as_any_other() -> None:
    laptop = sheet("NVIDIA GeForce RTX 4090 Laptop GPU", pci_ids=("10de:2717",))
    device = sheet("NVIDIA Graphics Device", pci_ids=("10de:2718",))
    brand = sheet("RTX GPU", pci_ids=("10de:2719",), aliases=("Big One",))
    site = (*SHEETS, laptop, device, brand)
    assert meant("RTX 4090 Laptop", site) == ("NVIDIA GeForce RTX 4090 Laptop GPU",)
    assert meant("4090", site) == ("NVIDIA GeForce RTX 4090",)
    assert meant("graphics device", site) == ("NVIDIA Graphics Device",)
    assert meant("big one", site) == meant("RTX GPU", site) == ("RTX GPU",)


def test_two_sheets_of_one_name_are_told_apart_by_their_own() -> None:
    """NVML gives several models one name: then only the PCI id tells which a card is."""
    small = sheet("Z9 16GB", nvml_names=("NVIDIA Z9",), pci_ids=("10de:0001",))
    large = sheet("Z9 32GB", nvml_names=("NVIDIA Z9",), pci_ids=("10de:0002",))
    both = (small, large)
    assert read("NVIDIA Z9", sheets=both) is None
    with pytest.raises(UserError, match=r"'Z9' may be Z9 16GB or Z9 32GB: write the one"):
        read("Z9", sheets=both)
    card = Card("NVIDIA Z9", "10de:0001")
    assert gpu_names.is_of("Z9 16GB", card, both)  # type: ignore[arg-type]
    assert not gpu_names.is_of("Z9 32GB", card, both)  # type: ignore[arg-type]
    assert gpu_names.is_of("NVIDIA Z9", card, both)  # type: ignore[arg-type]
