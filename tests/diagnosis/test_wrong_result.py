"""One wrong result in words."""

from __future__ import annotations

from typing import Any

from cases import each

from acceptance.diagnosis.wrong_result import in_words
from acceptance.loads.miscompare import read_or_keep
from acceptance.reports import languages
from acceptance.wording import words

LAYER = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "layer_reference",
    "layer": "bert",
    "tensor": "output",
    "elements": 3,
    "odd": 0,
    "error": 0.5,
    "bound": 0.01,
    "first": [{"index": [3, 7], "expected": "1.0", "got": "1.5"}],
}
FILE = {
    "component": "disk:sda",
    "check": "memmap",
    "file": "data-0",
    "pass": 1,
    "block": 7,
    "offset": 28672,
    "words": 2,
    "unwritten": 0,
    "want": "ab",
    "got": "cd",
    "xor": "66",
}
ROWS = {
    "component": "core:1",
    "check": "exact",
    "found": "wrong rows",
    "rows": 2,
    "first": [5, 9],
}
TRAINED = {
    "component": "gpu1",
    "check": "parallel_gradient",
    "way": "ddp",
    "arm": "default",
    "accumulation": 1,
    "step": 2,
    "tensor": "embed",
    "difference": "nan",
    "bound": 0.1,
}


@each(
    "given, text",
    [
        (
            LAYER,
            "dtype bf16, check layer_reference, layer bert, tensor output, error 0.5, bound 0.01; "
            "wrong: 3; the first at 3, 7: 1.5 instead of 1.0",
        ),
        (
            FILE,
            "check memmap, file data-0, pass 1, block 7; wrong: 2; the first at 28672: "
            "cd instead of ab",
        ),
        (ROWS, "check exact, found wrong rows; wrong: 2; the first at 5"),
        (
            TRAINED,
            "check parallel_gradient, way ddp, arm default, accumulation 1, step 2, tensor embed, "
            "difference nan, bound 0.1",
        ),
    ],
)
def test_a_wrong_result_says_where_and_what(given: dict[str, Any], text: str) -> None:
    assert words.message(in_words(read_or_keep(given))) == text


def test_a_gpu_may_have_the_name_that_it_has_in_the_run() -> None:
    told = in_words(read_or_keep(TRAINED), {"component": "gpu5"})
    assert words.message(told).startswith("gpu5, check parallel_gradient")


def test_one_that_cannot_be_read_says_why() -> None:
    assert in_words(read_or_keep({"check": "new"})).code == "wrong_result_unread"
    chinese = words.message(in_words(read_or_keep(LAYER)), languages.language("zh-CN"))
    assert chinese.endswith("\uff1b错误 3 个\uff1b首个在 3, 7\uff1a得到 1.5\uff0c应为 1.0")
