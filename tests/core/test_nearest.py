from __future__ import annotations

from cases import each

from acceptance.core.nearest import cure, nearest


@each(
    "word, known, found",
    [
        ("acept", ("accept", "report"), ("accept",)),
        ("ACCEPT", ("accept", "report"), ("accept",)),
        ("link-width", ("link_width", "link_gen"), ("link_width",)),
        ("dokcer", ("auto", "docker", "host"), ("docker",)),
        ("net", ("network", "memory"), ("network",)),
        ("ne", ("network", "memory"), ()),  # two letters may be meant for anything
        ("nightmare", ("nightly",), ()),
        ("foo", ("gpu", "cpu"), ()),
        ("", ("gpu",), ()),
        ("gpu", (), ()),
    ],
)
def test_the_nearest_word(word: str, known: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert nearest(word, known) == found


def test_the_most_alike_come_first() -> None:
    known = ("gpu.present", "gpu.granted", "gpu.ready", "cpu.gemm")
    assert nearest("gpu.presnt", known, 3)[0] == "gpu.present"
    assert nearest("stor", ("storage", "store"), 1, likeness=0.99) == ("storage",)


def test_the_cure() -> None:
    assert cure("acept", ["accept"], "see the list") == "did you mean accept?"
    assert cure("GB", ["GB/s", "GiB", "W"], "", 2) == "did you mean GiB or GB/s?"
    assert cure("foo", ["accept"], "see the list") == "correct it (see the list)"
