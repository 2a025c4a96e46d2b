"""Compare the result digests of equal GPUs that did the same work, and name the outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core.message import Listed, Message, Values, english
from acceptance.core.parts import Component

ProductKey = tuple[str, str]  # format and shape
Digests = tuple[str, str]  # of the inputs, and of the result


@dataclass(frozen=True, slots=True)
class ProductDigests:
    """The products of one GPU: their digests, and the library that made them.

    Another library may add in another order.
    """

    library: str
    rows: Mapping[ProductKey, Digests]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Which GPUs differ from their siblings.

    `differing` gives for each GPU that could be compared the products in which it differs, with its
    own digest and that of the majority. `troubles` say why GPUs of one model could not be compared.
    """

    differing: Mapping[Component, Mapping[ProductKey, Message]] = field(default_factory=dict)
    troubles: tuple[Message, ...] = ()


def compare(
    digests: Mapping[Component, ProductDigests], siblings: Mapping[str, Sequence[Component]]
) -> Agreement:
    """Compare each GPU's products with those of all GPUs of its model.

    `siblings` are the GPUs by model. A row is right where more GPUs have it than any other. On a
    tie (two GPUs alone that differ) no GPU is cleared: all GPUs with a leading row differ. A GPU is
    absent where no sibling has products.
    """
    differing: dict[Component, dict[ProductKey, Message]] = {}
    troubles: list[Message] = []
    for model, names in siblings.items():
        group = {name: digests[name] for name in names if name in digests}
        if len(group) < 2:
            continue
        if trouble := _unlike(model, group):
            troubles.append(trouble)
            continue
        differing |= {name: {} for name in group}
        for key in next(iter(group.values())).rows:
            for name, told in _outliers(key, group).items():
                differing[name][key] = told
    return Agreement(differing, tuple(troubles))


def _unlike(model: str, group: Mapping[Component, ProductDigests]) -> Message | None:
    """Why these GPUs did not do the same work, or None."""
    libraries = {one.library for one in group.values()}
    if len(libraries) > 1:
        named = tuple(f"{name} {one.library}" for name, one in group.items())
        return Message(
            english(
                "libraries_differ",
                "equal GPUs ({model}) ran with different libraries, so their results cannot be "
                "compared: {libraries}",
            ),
            {"model": model, "libraries": Listed(named)},
        )
    every = set().union(*(one.rows for one in group.values()))
    if any(set(one.rows) != every for one in group.values()):
        made = tuple(
            f"{name} {', '.join(' '.join(key) for key in sorted(one.rows))}"
            for name, one in group.items()
        )
        return Message(
            english(
                "products_differ",
                "equal GPUs ({model}) did not make the same products, so their results cannot be "
                "compared: {products}",
            ),
            {"model": model, "products": made},
        )
    return None


def _outliers(
    key: ProductKey, group: Mapping[Component, ProductDigests]
) -> dict[Component, Message]:
    """The GPUs that do not have the majority's row, and what differs."""
    votes = Counter(one.rows[key] for one in group.values())
    if len(votes) == 1:
        return {}
    (best, most), (second, next_most), *_ = votes.most_common()
    tied = next_most == most
    found = {}
    for name, one in group.items():
        own = one.rows[key]
        if tied or own != best:
            other = second if own == best else best
            place = 0 if own[0] != other[0] else 1
            than = Message(english("another_has", "another has {digest}"), {"digest": other[place]})
            if not tied:
                values: Values = {"most": most, "of": len(group), "digest": best[place]}
                than = Message(english("most_have", "{most} of {of} have {digest}"), values)
            code = (
                english("result_differs", "{product}: result {own}, {others}")
                if place
                else "inputs_differ"
            )
            about: Values = {"product": " ".join(key), "own": own[place], "others": than}
            found[name] = Message(code, about)
    return found
