"""Matplotlib's SVG made fit for a page with a strict policy and two colour schemes.

The page forbids style attributes, so every style becomes a presentation attribute; sentinel colours
become classes, so that the page's own variables paint the figure in light and dark; ids are
dropped or made unique, since many figures share one document; nothing refers to a url.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# Painted by page.css as .fill-<name> and .stroke-<name>. The values only have to differ.
INKS = {
    "ink": "#010101",
    "muted": "#020202",
    "rule": "#030303",
    "D": "#040404",
    "M": "#050505",
    "S": "#060606",
    "good": "#070707",
    "surface": "#080808",
    "O": "#090909",
    "T": "#0a0a0a",
    "N": "#0b0b0b",
    "seventh": "#0c0c0c",
    "eighth": "#0d0d0d",
}
# A control's contexts take the inks and marks of those whose part they play; no study asks one twice.
PARTS = {
    "exact": "M", "noisy": "O", "wrong_seed": "S", "sign": "N",
    "numbers": "N", "mechanism": "T", "scaffold": "eighth",
    "donor_mechanism": "O", "donor_numbers": "seventh",
    "donor_1": "seventh", "donor_2": "O", "donor_3": "N", "donor_4": "T", "donor_5": "eighth",
    "true_note": "M", "false_note": "S",
}  # fmt: skip
_NAMES = {value: name for name, value in INKS.items()}
_KEPT = {
    "fill", "stroke", "fill-opacity", "stroke-opacity", "opacity", "stroke-width", "stroke-dasharray",
    "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "text-anchor",
}  # fmt: skip
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # ships with Matplotlib: the layout is the same on every machine
    "font.size": 12.0,
    "text.parse_math": False,  # a name may hold a dollar sign
    "axes.facecolor": "none",
    "axes.edgecolor": INKS["rule"],
    "axes.labelcolor": INKS["muted"],
    "axes.titlesize": 12.5,
    "axes.labelsize": 11.5,
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlecolor": INKS["ink"],
    "text.color": INKS["ink"],
    "xtick.color": INKS["rule"],
    "ytick.color": INKS["rule"],
    "xtick.labelcolor": INKS["muted"],
    "ytick.labelcolor": INKS["ink"],
    "xtick.labelsize": 11.0,
    "ytick.labelsize": 11.5,
    "lines.solid_capstyle": "round",
}


def part(context: str) -> str:
    """The name under which the page paints a context: its own letter, or that of the part it plays."""
    return PARTS.get(context, context)


def ink(context: str, otherwise: str = "ink") -> str:
    """A context's ink; what is none the page knows gets another."""
    return INKS.get(part(context), INKS[otherwise])


@contextmanager
def canvas(name: str, width: float, height: float) -> Iterator[Figure]:
    """An empty figure of width x height pixels, without pyplot's global state.

    Draw and call `inline` inside the block. The same name and drawing give the same bytes.
    """
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # a user's own matplotlibrc must not change a report
        mpl.rcParams.update({**_RC, "svg.hashsalt": name})
        # The page's fonts draw the text; Matplotlib only measures it, roughly if it lacks a glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")


def inline(
    figure: Figure, name: str, *, label: str, titles: Mapping[str, Sequence[str]] | None = None
) -> str:
    """A figure as an SVG element for the body of a page.

    name: unique on the page; it salts and prefixes ids. label: what the figure shows, for who
    cannot see it. titles: by gid of a marker series, the tooltip of each of its points in order.
    """
    figure.patch.set_visible(False)
    buffer = io.BytesIO()
    # Not savefig, which draws everything twice.
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    draw = FigureCanvasSVG(figure).print_svg
    draw(buffer, metadata=metadata)  # type: ignore[no-untyped-call]  # Matplotlib leaves it unannotated
    root = ElementTree.fromstring(buffer.getvalue())
    _strip_namespaces(root)
    _prune(root)
    for gid, texts in (titles or {}).items():
        _add_titles(root, gid, texts)
    _rename_ids(root, name)
    for element in root.iter():
        _unstyle(element)
    view_box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": view_box, "role": "img", "aria-label": label, "focusable": "false"})
    return re.sub(r">\s+<", "><", ElementTree.tostring(root, encoding="unicode", short_empty_elements=True))


def _strip_namespaces(root: ElementTree.Element) -> None:
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key in [k for k in element.attrib if "}" in k]:
            element.attrib[key.rpartition("}")[2]] = element.attrib.pop(key)


def _prune(root: ElementTree.Element) -> None:
    """Drop metadata, Matplotlib's own stylesheet and clip paths, which work through url()."""
    for parent in root.iter():
        parent.attrib.pop("clip-path", None)
        for child in [c for c in parent if c.tag in {"metadata", "style", "clipPath"}]:
            parent.remove(child)
    for parent in root.iter():
        for child in [c for c in parent if c.tag == "defs" and len(c) == 0]:
            parent.remove(child)


def _add_titles(root: ElementTree.Element, gid: str, texts: Sequence[str]) -> None:
    series = root.find(f".//g[@id='{gid}']")
    if series is not None:
        for mark, text in zip(series.iter("use"), texts, strict=True):
            ElementTree.SubElement(mark, "title").text = text


def _rename_ids(root: ElementTree.Element, name: str) -> None:
    used = {e.attrib["href"].removeprefix("#") for e in root.iter() if "href" in e.attrib}
    for element in root.iter():
        if (own := element.attrib.pop("id", None)) in used:
            element.attrib["id"] = f"{name}-{own}"
        if "href" in element.attrib:
            element.attrib["href"] = f"#{name}-{element.attrib['href'].removeprefix('#')}"


def _unstyle(element: ElementTree.Element) -> None:
    """Style declarations to presentation attributes and classes."""
    classes = []
    for declaration in element.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key in {"fill", "stroke"} and value in _NAMES:
            classes.append(f"{key}-{_NAMES[value]}")
        elif key in {"font", "font-size"} and (size := re.search(r"([\d.]+)px", value)):
            element.attrib["font-size"] = size[1]
        elif key in _KEPT:
            element.attrib[key] = value
    if element.attrib.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    if element.tag == "text" and not any(c.startswith("fill-") for c in classes):
        classes.append("fill-ink")
    if classes:
        element.attrib["class"] = " ".join(classes)
