"""A page as its tests look at it."""

from __future__ import annotations

import re
from collections.abc import Collection

from lxml import html as lxml_html


def page(text: str) -> lxml_html.HtmlElement:
    return lxml_html.document_fromstring(text)


def words(element: lxml_html.HtmlElement) -> str:
    return " ".join(" ".join(element.xpath(".//text()[not(parent::style)]")).split())


def assert_inert(text: str, tags: Collection[str], attributes: Collection[str]) -> None:
    """Nothing that text from outside could have become: only these elements and attributes, and
    in those only what our templates write.
    """
    for element in page(text).iter():
        assert element.tag in tags
        assert set(element.attrib) <= set(attributes)
        assert re.fullmatch(r"(#[a-z0-9]+|logs/[\w.%+-]+)?", element.get("href", ""))
        assert re.fullmatch(r"(left:[\d.]+%;width:[\d.]+%)?", element.get("style", ""))
        assert re.fullmatch(r"([MLHVhvCZ\d. -]+)?", element.get("d", ""))
        assert element.tag != "style" or not re.search(r"url\(|@import", element.text or "")
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text)
