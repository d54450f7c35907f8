"""The proof of an endpoint as files: JUnit's XML for CI, Markdown for people; both with lines to ask the same again."""

from __future__ import annotations

import re
import time
from xml.etree import ElementTree as Xml

from stoker.cli.show import place_text
from stoker.probes import find
from stoker.probes.kit.evidence import cut, is_cut, render_curl
from stoker.records import CheckResult, Exchange, ProbeResult, Verdict, Verification, say_s

NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SHOWN_CHARACTERS = 1500
CUT_BODY = "# the body was cut where it says so: make it as long again to ask the same"


def junit_text(view: Verification) -> str:
    """Returns one test suite a probe and one case a check; what is neither well nor wrong is skipped, with its reason."""
    place = place_text(view.url, view.box)
    suites = Xml.Element("testsuites", name=_xml(f"stoker verify {view.model} {place}"), time=f"{view.took_s:.3f}")
    for probe in view.probes:
        suite = Xml.SubElement(
            suites, "testsuite", name=probe.name, tests=str(len(probe.checks)), time=f"{probe.took_s:.3f}",
            failures=str(sum(check.verdict is Verdict.FAIL for check in probe.checks)), errors="0",
            skipped=str(sum(_is_skipped(check) for check in probe.checks)),
        )  # fmt: skip
        for check in probe.checks:
            _add_case(suite, probe, check)
    Xml.indent(suites)
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _is_skipped(check: CheckResult) -> bool:
    return check.verdict in (Verdict.NOT_OFFERED, Verdict.UNKNOWN)


def _add_case(suite: Xml.Element, probe: ProbeResult, check: CheckResult) -> None:
    took_s = sum(one.took_s for one in check.exchanges)
    case = Xml.SubElement(suite, "testcase", classname=f"verify.{probe.name}", name=check.name, time=f"{took_s:.3f}")
    said = _xml(f"{check.says}{f'; mend: {check.mend}' if check.mend else ''}")
    if check.verdict is Verdict.FAIL:
        Xml.SubElement(case, "failure", message=said).text = _xml("\n\n".join(map(_replay, check.exchanges)))
    elif _is_skipped(check):
        Xml.SubElement(case, "skipped", message=f"{check.verdict}: {said}")
    else:
        Xml.SubElement(case, "system-out").text = f"{check.verdict}: {said}"


def _xml(text: str) -> str:
    return NOT_XML.sub("�", text)


def _replay(exchange: Exchange) -> str:
    came = f"HTTP {exchange.status}" if exchange.status is not None else "no answer"
    problem = f" ({exchange.problem})" if exchange.problem else ""
    warning = f"{CUT_BODY}\n" if is_cut(exchange.body) else ""
    answer = f"-> {came}{problem} after {exchange.took_s:.2f} s\n{cut(exchange.reply, SHOWN_CHARACTERS)}"
    return f"{warning}{render_curl(exchange)}\n{answer}"


def markdown_text(view: Verification) -> str:
    """Returns a table of all checks, and below it the exchanges of those that are not well."""
    day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(view.begun))
    lines = [
        f"# {_cell(view.model)} {_cell(place_text(view.url, view.box))}: {view.verdict}", "",
        f"`stoker verify`, {day}, {say_s(view.took_s)}; engine by its own metrics: {view.engine or 'unknown'}.", "",
        "| probe | check | verdict | what was seen | how to mend it |", "| --- | --- | --- | --- | --- |",
        *(_row(probe, check) for probe in view.probes for check in probe.checks), "",
    ]  # fmt: skip
    for probe in view.probes:
        for check in probe.checks:
            if check.verdict not in (Verdict.PASS, Verdict.NOT_OFFERED):
                lines += _section(probe, check)
    return "\n".join(lines)


def _row(probe: ProbeResult, check: CheckResult) -> str:
    return f"| {probe.name} | {check.name} | {check.verdict} | {_cell(check.says)} | {_cell(check.mend)} |"


def _section(probe: ProbeResult, check: CheckResult) -> list[str]:
    means = find(probe.name).means
    lines = [f"## {probe.name}: {check.name} ({check.verdict})", "", _cell(check.says), "", f"What it means: {means}", ""]
    for exchange in check.exchanges:
        lines += [*(f"    {line}" for line in _replay(exchange).splitlines()), ""]
    return lines


def _cell(text: str) -> str:
    """What an endpoint says shall neither end a cell nor begin anything else."""
    return " ".join(re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text).split())
