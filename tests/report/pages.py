"""Reading pages as a browser would: headings, tables, names of pictures, texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "meta", "input", "link", "img"}


@dataclass
class Element:
    name: str
    attributes: dict
    parent: Element | None = None
    children: list = field(default_factory=list)

    @property
    def text(self):
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, *names):
        for child in self.children:
            if isinstance(child, Element):
                if not names or child.name in names:
                    yield child
                yield from child.all(*names)

    def first(self, *names):
        return next(self.all(*names))


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.here = Element("document", {})

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        found = Element(tag, dict(attrs), self.here)
        self.here.children.append(found)
        if tag not in VOID:
            self.here = found

    def handle_startendtag(self, tag, attrs):  # in pictures
        self.here.children.append(Element(tag, dict(attrs), self.here))

    def handle_endtag(self, tag):
        assert self.here.name == tag, f"</{tag}> ends <{self.here.name}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.children.append(data)


def read(page):
    """Return the elements of a page; every one must be ended, and in order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert reader.here is reader.root, f"<{reader.here.name}> is not ended"
    return reader.root


def rows_of(table):
    """Return a table's rows as lists of texts."""
    return [[cell.text for cell in row.all("th", "td")] for row in table.all("tr")]


def table_named(page, part):
    """Return the one table whose caption has a text."""
    (found,) = [one for one in page.all("table") if part in one.first("caption").text]
    return found
