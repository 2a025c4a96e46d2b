"""Sheets of the site: what they may be, and what they do to limits."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from boxes import BOXES
from cases import each
from journals import check, due, plan
from known import known
from refusal import assert_raises, raised
from synthetic_machines import inventory

from acceptance import resources
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.core.plan import LimitSet, LooserLimit, SiteSheet
from acceptance.expect import gpu_limits, limit_version, sheet, site_sheets
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.site_sheets import SiteSheetError
from acceptance.machine.inventory import Disk
from acceptance.wording import words

CARD = (resources.locate("models") / "geforce-rtx-4090.toml").read_text(encoding="utf-8")
DISK = (resources.locate("disks") / "samsung-990-pro.toml").read_text(encoding="utf-8")
NEW_CARD = (
    CARD.replace('name = "GeForce RTX 4090"', 'name = "RTX 9999"')
    .replace('"NVIDIA GeForce RTX 4090"', '"NVIDIA RTX 9999"')
    .replace("10de:2684", "10de:9999")
)
NEW_DISK = DISK.replace("990 PRO", "999 PRO")
MODEL, DRIVE = "models/card.toml", "disks/disk.toml"


def read(**texts: str) -> tuple[SiteSheet, ...]:
    names = {"card": MODEL, "disk": DRIVE}
    return site_sheets.read([(names.get(name, name), text) for name, text in texts.items()])


def test_a_sheet_replaces_rigproofs_own_of_its_name_or_adds_a_model() -> None:
    found = read(card=CARD.replace("tdp_w = 450", "tdp_w = 451"), disk=NEW_DISK)
    assert [(one.file, one.model, one.replaces) for one in found] == [
        (MODEL, "GeForce RTX 4090", True),
        (DRIVE, "Samsung 999 PRO", False),
    ]
    own, both = site_sheets.own_sheets(), site_sheets.in_effect(found)
    assert (len(both.models), len(both.disks)) == (len(own.models), len(own.disks) + 1)
    card = known(sheet.find(both.models, pci_id="10de:2684", nvml_name="NVIDIA GeForce RTX 4090"))
    assert card.tdp_w == 451
    assert words.message(card.origin) == "the site's sheet of GeForce RTX 4090, models/card.toml"
    disk = next(one for one in both.disks if one.matches("Samsung SSD 999 PRO 2TB"))
    assert words.message(disk.origin) == "the site's sheet of Samsung 999 PRO, disks/disk.toml"
    assert site_sheets.in_effect(()) == own
    assert [one.replaces for one in read(disk=DISK)] == [True]


@each(
    "file, text, told",
    [
        (MODEL, "x = [", "models/card.toml, line 1: is not valid TOML (Invalid value"),
        (
            MODEL,
            "x = " + "[" * 9999,
            "models/card.toml: is nested too deeply",
        ),
        (DRIVE, "x = " + "9" * 9999, "disks/disk.toml, line 1: a number of more than 4300 digits"),
        (MODEL, CARD.replace("sm = 128", f"sm = {10**400}"), "models/card.toml, line"),
        (MODEL, "x = 1\nx = 2", "models/card.toml, line 2: x is given twice, first in line 1"),
        (
            MODEL,
            "x = 1\n" + CARD,
            "card.toml, line 1: x is no key that rigproof knows: correct its ",
        ),
        (MODEL, CARD.replace("boost_mhz =", "bost_mhz ="), "did you mean boost_mhz?"),
        (MODEL, CARD.replace("[memory]", "[memori]"), "did you mean [memory]?"),
        (MODEL, CARD.replace("[[limit]]", "[[limits]]", 1), "did you mean [[limit]]?"),
        (MODEL, CARD + "\n[limit]", "models/card.toml"),
        (
            MODEL,
            CARD.replace('p2p = "no"', 'p2p = "nvlnk"'),
            "'nvlnk' is no such word: did you mean",
        ),
        (MODEL, CARD.replace('p2p = "no"', 'p2p = "x"'), "(one of bridge, no, nvlink, yes)"),
        (MODEL, CARD.replace("gemm_f32_short", "gem_f32_short"), "did you mean gemm_f32_short?"),
        (
            MODEL,
            CARD.replace("[doubtful]", '[doubtful]\n"memory.gb" = "x"'),
            "memory.gb is no fact of this sheet: did you mean memory.gib?",
        ),
        (
            MODEL,
            f'{CARD}\n[exempt]\nfp3 = "x"\n',
            "exempt.fp3 is no peak of this sheet: did you mean fp32?",
        ),
        (
            DRIVE,
            DISK.replace('kind = "nvme"', 'kind = "nvm"'),
            "'nvm' is no such word: did you mean",
        ),
        (DRIVE, DISK.replace("read_gbs", "read_gb", 1), "did you mean read_gbs?"),
        (MODEL, CARD.replace("tdp_w = 450", 'tdp_w = "x"'), "line 12: tdp_w must be a number, not"),
        (MODEL, CARD.replace("tdp_w = 450\n", ""), "card.toml: tdp_w is missing: add it"),
        (
            MODEL,
            CARD + '\n[[limit]]\nmeasurement = "gemm_f64"\nunit = "W"\nlow = 1\nbasis = "x"\n',
            "limit for gemm_f64: ",
        ),
        (DRIVE, DISK.replace("read_gbs = 7.45", "read_gbs = 70"), "variant.0.read_gbs: 70 GB/s is"),
        (DRIVE, DISK.replace('kind = "nvme"', 'kind = "tape"'), "disk.toml, line 2: "),
        # a card or disk must not lose its sheet
        (MODEL, CARD.replace("10de:2684", "10de:0001"), "line 3: pci_ids lacks '10de:2684', which"),
        (
            MODEL,
            CARD.replace('"NVIDIA GeForce RTX 4090"', '"NVIDIA X"'),
            "line 2: nvml_names lacks 'NVIDIA GeForce RTX 4090', which rigproof's own sheet",
        ),
        (
            DRIVE,
            NEW_DISK.replace('name = "Samsung 999 PRO"', 'name = "Samsung 990 PRO"'),
            "models lacks 'Samsung SSD 990 PRO",
        ),
        # nor have two
        (
            MODEL,
            CARD.replace('name = "GeForce RTX 4090"', 'name = "Mine"'),
            "line 3: pci_ids: 10de:2684 with one of these nvml_names is a card of rigproof's own "
            "sheet 'GeForce RTX 4090': give this one that name to replace it",
        ),
        (
            DRIVE,
            DISK.replace('name = "Samsung 990 PRO"', 'name = "Mine"'),
            "is a disk of rigproof's own sheet 'Samsung 990 PRO': give this one that name",
        ),
    ],
)
def test_what_is_refused(file: str, text: str, told: str) -> None:
    with pytest.raises(SiteSheetError) as refusal:
        site_sheets.read([(file, text)])
    assert told in str(refusal.value)
    assert str(refusal.value).startswith(file)


def test_a_pattern_that_takes_a_disk_of_rigproofs_own() -> None:
    lines = NEW_DISK.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("models = "))
    lines[at] = 'models = ["Samsung SSD 99[09] PRO.*"]'
    assert f"line {at + 1}: models: 'Samsung SSD 990 PRO" in raised(
        SiteSheetError, read, disk="\n".join(lines)
    )


@each(
    "first, second, told",
    [
        (NEW_CARD, NEW_CARD, "b.toml, line 1: 'RTX 9999' is the name of another file's sheet too"),
        (
            NEW_CARD,
            NEW_CARD.replace('name = "RTX 9999"', 'name = "B"'),
            "the sheet of 'RTX 9999' be",
        ),
    ],
)
def test_two_sheets_of_one_card(first: str, second: str, told: str) -> None:
    assert told in raised(
        SiteSheetError, site_sheets.read, [("models/a.toml", first), ("models/b.toml", second)]
    )


def test_two_sheets_of_one_disk() -> None:
    for second in (NEW_DISK, NEW_DISK.replace('name = "Samsung 999 PRO"', 'name = "B"')):
        assert_raises(
            SiteSheetError,
            site_sheets.read,
            [("disks/a.toml", NEW_DISK), ("disks/b.toml", second)],
            match=r"disks/b\.toml, line \d+: ",
        )


def test_reports_of_a_run_use_its_own_sheets() -> None:
    assert site_sheets.of_record(None) == site_sheets.own_sheets()
    (one,) = read(card=CARD.replace("tdp_w = 450", "tdp_w = 451"))
    kept = site_sheets.of_record(LimitSet("v", "d", "/s", (one,)))
    assert [card.tdp_w for card in kept.models if card.name == one.model] == [451]
    # of another version, which this one cannot read: neither is used
    other = SiteSheet(one.file, one.model, one.sha256, "new = 1\n" + one.text, replaces=True)
    left = site_sheets.of_record(LimitSet("v", "d", "/s", (other,)))
    assert one.model not in {card.name for card in left.models}
    assert_raises(SiteSheetError, site_sheets.in_effect, (other,))


def test_limits_are_the_same_only_whole() -> None:
    version, digest = limit_version.shipped()
    assert site_sheets.is_same(LimitSet(version, digest))
    assert not site_sheets.is_same(LimitSet(version, "0" * 64))
    sheets = read(card=NEW_CARD)
    limits = LimitSet(version, limit_version.with_sheets(digest, sheets), "/s", sheets)
    assert site_sheets.is_same(limits)
    (one,) = sheets
    altered = SiteSheet(one.file, one.model, one.sha256, one.text + "\n# x", replaces=False)
    assert not site_sheets.is_same(LimitSet(version, limits.digest, "/s", (altered,)))
    told = SiteSheet(
        one.file,
        one.model,
        hashlib.sha256(altered.text.encode()).hexdigest(),
        altered.text,
        replaces=False,
    )
    assert not site_sheets.is_same(LimitSet(version, limits.digest, "/s", (told,)))


def test_a_sheet_of_the_site_closes_no_gap() -> None:
    seen = inventory(BOXES["8xh200.toml"])
    devices = tuple(
        replace(one, traits=replace(one.traits, ecc_enabled=False)) if one.traits else one
        for one in seen.nvml.devices
    )
    off = replace(seen, nvml=replace(seen.nvml, devices=devices))
    own = gpu_limits.sheets()
    names = (Gpu(0), Gpu(1))
    expected = tuple(gpu_limits.gaps(off, names, own))
    assert len(expected) == 2
    assert site_sheets.gaps(off, names, ()) == expected
    assert site_sheets.gaps(off, names, own) == expected


def entry(
    name: str, gpu: int | None, low: float | None, high: float | None = None, unit: str = "GB/s"
) -> Override:
    limit = Limit(unit, "b", low, high) if (low, high) != (None, None) else None
    return Override(
        name, "o", limit, None if gpu is None else Gpu(gpu), "none" if not limit else None
    )


OWN = LimitBook(
    (entry("copy", None, 100.0), entry("hot", None, None, 80.0), entry("free", None, None)),
    (entry("copy", None, None, 900.0),),
)


@each(
    "limits, ceilings, told",
    [
        ((), (), []),
        ((entry("copy", None, 101.0), entry("hot", None, None, 79.0)), (), []),
        ((entry("free", None, 5.0),), (), []),
        ((entry("copy", 1, 99.0),), (), [("copy", 1, "limit", 99.0)]),
        ((entry("copy", 0, None),), (), [("copy", 0, "limit", None)]),
        ((entry("copy", 0, None, 5.0),), (), [("copy", 0, "limit", None)]),
        (
            (entry("hot", None, None, 81.0),),
            (),
            [("hot", 0, "limit", 81.0), ("hot", 1, "limit", 81.0)],
        ),
        ((entry("hot", 0, 5.0),), (), [("hot", 0, "limit", None)]),
        ((), (entry("copy", 0, None, 901.0),), [("copy", 0, "ceiling", 901.0)]),
        ((), (entry("copy", 0, None, 899.0),), []),
    ],
)
def test_what_is_looser(
    limits: tuple[Override, ...],
    ceilings: tuple[Override, ...],
    told: list[tuple[str, int, str, float | None]],
) -> None:
    every = [due(name, Gpu(n)) for name in ("copy", "hot", "free", "new") for n in range(2)]
    made = plan(check("a", *every), check("b", *every))  # one of two checks is told once
    site = LimitBook((*limits, *OWN.entries), (*ceilings, *OWN.ceilings))
    found = site_sheets.looser(made, site, OWN)
    shown = [
        (
            one.measurement,
            one.component,
            one.kind,
            (one.limit.low if one.measurement == "copy" and one.kind == "limit" else one.limit.high)
            if one.limit
            else None,
        )
        for one in found
    ]
    assert shown == [(name, Gpu(gpu), kind, value) for name, gpu, kind, value in told]


def test_a_ceiling_that_is_gone_is_looser() -> None:
    found = site_sheets.looser(plan(check("a", due("copy", Gpu(0)))), LimitBook(OWN.entries), OWN)
    assert [(one.kind, one.limit) for one in found] == [("ceiling", None)]


def test_the_notes() -> None:
    sheets = read(card=CARD, disk=NEW_DISK)
    low, less = Limit("GB/s", "b", 100.0), Limit("GB/s", "b", 90.0)
    most, more = Limit("GB/s", "b", high=900.0), Limit("GB/s", "b", high=950.0)
    looser = (
        LooserLimit("copy", Gpu(0), "limit", low, less),
        LooserLimit("copy", Gpu(1), "limit", low, less),
        LooserLimit("copy", Gpu(2), "limit", low),
        LooserLimit("copy", Gpu(0), "ceiling", most, more),
        LooserLimit("copy", Gpu(1), "ceiling", most),
    )
    limits = LimitSet("v", "d", "/s", sheets, looser)
    found = list(site_sheets.notes(limits, {MODEL, DRIVE}))
    assert all(isinstance(one, Message) for one in found)
    loose, own = "looser by the site's sheets:", "by rigproof's own"
    assert [words.message(one) for one in found] == [
        f"the site's sheet models/card.toml (sha256 {sheets[0].sha256[:12]}) replaces rigproof's "
        "own of GeForce RTX 4090",
        f"the site's sheet disks/disk.toml (sha256 {sheets[1].sha256[:12]}) is of Samsung 999 "
        "PRO, which rigproof has no sheet of",
        f"{loose} copy of gpu0, gpu1 must be >= 90 GB/s, {own} >= 100 GB/s",
        f"{loose} copy of gpu2 has no limit, {own} it must be >= 100 GB/s",
        f"{loose} the ceiling of copy of gpu0 is 950 GB/s, {own} 900 GB/s",
        f"{loose} copy of gpu1 has no ceiling, {own} it is 900 GB/s",
    ]
    (told, *_) = site_sheets.notes(limits, ())
    assert words.message(told) == (
        "sheets of the site that are of no GPU or disk here: models/card.toml, disks/disk.toml"
    )


def test_which_sheets_are_of_parts_of_this_machine() -> None:
    seen = inventory(BOXES["2x4090.toml"])
    disk = Disk("nvme0n1", "Samsung SSD 999 PRO 2TB", None, None, "ssd", "nvme", None)
    seen = replace(seen, disks=(disk, replace(disk, model=None), replace(disk, model="Other")))
    sheets = site_sheets.in_effect(read(card=CARD, disk=NEW_DISK))
    assert site_sheets.applied(seen, sheets) == {MODEL, DRIVE}
    assert site_sheets.applied(seen, site_sheets.in_effect(read(card=NEW_CARD))) == frozenset()
