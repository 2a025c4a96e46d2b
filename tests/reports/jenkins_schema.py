"""The rules of the JUnit schema of Jenkins' xunit plugin (junit-10.xsd), as a checker of our own.

Testcase properties are not in that schema; Jenkins' junit plugin and others read them, and they are
the one thing allowed beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lxml import etree

TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
_RESULT = ({"type", "message"}, set(), set())
# Element: attributes that may be, attributes that must be, children that may be.
RULES: Mapping[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname"}
        | {"id", "package", "file", "log", "url"},
        {"name", "tests", "failures", "errors"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err", "properties"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, {"name", "value"}, set()),
    "failure": _RESULT,
    "error": _RESULT,
    "skipped": _RESULT,
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
_MIXED = {"failure", "error", "skipped", "system-out", "system-err"}


def faults(data: bytes) -> list[str]:
    """Everything in which a file breaks the rules; an XML error counts as one."""
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, huge_tree=True))
    except etree.XMLSyntaxError as error:
        return [f"no XML: {error}"]
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        found += _element(element)
    for suite in root.iter("testsuite"):
        found += _counts(suite)
    names = [case.get("name") for case in root.iter("testcase")]
    return found + [
        f"the name {name} stands twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]


def _element(element: etree._Element) -> list[str]:
    tag = str(element.tag)
    if tag not in RULES:
        return [f"{tag} is no element"]
    may, must, children = RULES[tag]
    given = {str(name) for name in element.attrib}
    found = [f"{tag} has {name}" for name in given - may] + [
        f"{tag} lacks {name}" for name in must - given
    ]
    found += [f"{child.tag} in {tag}" for child in element if child.tag not in children]
    if tag not in _MIXED and (
        (element.text or "").strip() or any((child.tail or "").strip() for child in element)
    ):
        found.append(f"text in {tag}")
    time = element.get("time")
    if time is not None and not TIME.fullmatch(time):
        found.append(f"time {time}")
    return found


def _counts(suite: etree._Element) -> list[str]:
    cases = suite.findall("testcase")
    told = {name: int(suite.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")}
    real = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    found = [] if told == real else [f"the suite counts {told} and holds {real}"]
    total, times = (
        float(suite.get("time", "-1")),
        sum(float(case.get("time", "0")) for case in cases),
    )
    found += [] if abs(total - times) < 0.01 else [f"the suite took {total} and its cases {times}"]
    results = [
        sum(child.tag in ("failure", "error", "skipped") for child in case) for case in cases
    ]
    return found + ["a testcase has two results" for count in results if count > 1]
