"""The article that goes before the name of a model."""

from __future__ import annotations

from cases import each

from acceptance.expect.sheet import with_article
from acceptance.wording import words


@each(
    "told",
    [
        *(
            "an H200 SXM 141GB",
            "an A100 PCIe 40GB",
            "an RTX 6000 Ada Generation",
            "an L40S",
            "an NVIDIA H20",
        ),
        *(
            "a V100 SXM2 16GB",
            "a T4",
            "a B200",
            "a GB200",
            "a GH200",
            "a GeForce RTX 4090",
            "a Quadro RTX 8000",
            "an Orin",
            "a Spark",
        ),
    ],
)
def test_the_article_goes_by_the_sound(told: str) -> None:
    assert words.message(with_article(told.split(" ", 1)[1])) == told
