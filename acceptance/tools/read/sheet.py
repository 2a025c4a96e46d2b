"""A GPU or disk sheet of a site, read as a run would read it, without the card or the disk.

It fails if it contradicts itself, or one of rigproof's own sheets; what is no sheet is an error.
"""

from __future__ import annotations

import tomllib

from acceptance.core.limit import MIB
from acceptance.core.message import Message, Values, english, known
from acceptance.expect import sheet_figures, site_sheets
from acceptance.expect.sheet import Sheet
from acceptance.expect.site_sheets import DISKS, MODELS, SiteSheetError
from acceptance.tools.reading import ToolOutput

NAME = "sheet"
MOST = MIB  # the largest shipped one has 20 KiB
_OF_DISKS = frozenset({"kind", "models", "variant"})  # keys that a GPU sheet does not have


def parse(text: str) -> ToolOutput:
    """Hold a sheet against itself and rigproof's own."""
    if len(text) > MOST:
        return ToolOutput(
            NAME,
            "error",
            Message(
                english(
                    "sheet_too_large",
                    "a sheet has at most {most} MiB: give the file of one GPU or disk model",
                ),
                {"most": MOST // MIB},
            ),
        )
    file = f"{DISKS if _is_of_disk(text) else MODELS}/{NAME}.toml"
    try:
        site_sheets.read([(file, text)])
        found = site_sheets.parse(file, text)
    except SiteSheetError as error:
        code = (
            english("sheet_contradicts", "[line {line}: ]{why}")
            if error.contradicts
            else english("sheet_unreadable", "this is no sheet: [line {line}: ]{why}")
        )
        about = known(line=error.line, why=error.sentence)
        return ToolOutput(NAME, "fail" if error.contradicts else "error", Message(code, about))
    if not isinstance(found, Sheet):
        sizes: Values = {"model": found.name, "sizes": len(found.variant)}
        return ToolOutput(
            NAME,
            "pass",
            Message(
                english(
                    "disk_sheet_sound", "disk sheet of {model}: its figures agree (sizes: {sizes})"
                ),
                sizes,
            ),
        )
    if peaks := sheet_figures.unchecked(found):
        values: Values = {"model": found.name, "capability": found.compute_capability}
        values = {**values, "formats": ", ".join(peaks)}
        return ToolOutput(
            NAME,
            "pass",
            Message(
                english(
                    "sheet_peaks_unchecked",
                    "GPU sheet of {model}: its figures agree; the peaks of {formats} were held "
                    "against nothing, because no architecture of compute capability {capability} "
                    "is known",
                ),
                values,
            ),
        )
    floors: Values = {"model": found.name, "floors": len(found.limit)}
    return ToolOutput(
        NAME,
        "pass",
        Message(
            english("sheet_sound", "GPU sheet of {model}: its figures agree (floors: {floors})"),
            floors,
        ),
    )


def _is_of_disk(text: str) -> bool:
    """Whether it has a key of disk sheets; what cannot be read is told as a GPU sheet."""
    try:
        return bool(_OF_DISKS & tomllib.loads(text).keys())
    except (RecursionError, ValueError):
        return False
