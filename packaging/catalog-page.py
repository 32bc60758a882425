#!/usr/bin/env python3
"""Prints docs/catalog-reference.md, which is generated itself, as the manual page gloveport-catalog(5).

    packaging/catalog-page.py docs/catalog-reference.md

Made when the packages are, so that it cannot differ from the page. Understands what that page uses:
headings, paragraphs, tables whose first column is the term, code blocks, `code` and links.
"""

import re
import sys
from pathlib import Path

HEAD = """.Dd August 22, 2026
.Dt GLOVEPORT-CATALOG 5
.Os
.Sh NAME
.Nm gloveport-catalog
.Nd the language of catalogues
.Sh DESCRIPTION
"""
TAIL = """.Sh FILES
.Bl -tag -width Ds
.It Pa /etc/gloveport/catalog.d/*.yaml
Sources, as the operator writes them.
.It Pa /etc/gloveport/catalog.json , catalog.json.sig
What is in force.
.It Pa /usr/share/gloveport/catalogs/
Ready catalogues.
.El
.Sh SEE ALSO
.Xr gloveport 1 ,
.Xr ssh-keygen 1 ,
.Xr gloveport-helper 8
"""


def roff(text):
    """Text with its markup: code bold, links as their words, nothing that roff would read."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("\\|", "|").replace("\\", "\\e")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    # A sentence begins a line, as mdoc wants it; what follows <br> does so on paper.
    text = re.sub(r"(?<=[a-z0-9)}R])\. (?=[A-Z])", ".\n", text)
    text = text.replace("…", "...").replace("–", "\\(en").replace("-", "\\-")
    lines = text.replace("<br>", "\n.br\n").split("\n")
    return "\n".join("\\&" + line if line[:1] in (".", "'") and line != ".br" else line for line in lines)


def table(rows):
    """A table as a list: the first column is the term, the others follow under their titles."""
    titles, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))] for row in rows)
    lines = [".Bl -tag -width Ds"]
    for term, *cells in rows[1:]:
        lines.append(".It " + roff(term).replace("\n", " "))
        *notes, meaning = zip(titles[1:], cells)
        said = "; ".join(f"{title} {roff(cell)}" if title == "default" else roff(cell) for title, cell in notes if cell)
        lines += [f"({said})"] * bool(said) + [roff(meaning[1])]
    return lines + [".El"]


def page(text):
    lines = []
    for block in re.split(r"\n{2,}", text.strip()):
        first = block.split("\n")[0]
        if first.startswith("# ") or first.startswith("Generated from"):
            continue
        if heading := re.match(r"(##+) (.*)", first):
            lines.append((".Sh " if heading[1] == "##" else ".Ss ") + roff(heading[2].upper() if heading[1] == "##" else heading[2]))
        elif first.startswith("|"):
            lines += table(block.split("\n"))
        elif first.startswith("```"):
            lines += [".Bd -literal -offset indent", *block.replace("\\", "\\e").split("\n")[1:-1], ".Ed"]
        else:
            after_heading = not lines or lines[-1].startswith((".Sh", ".Ss"))
            lines += [roff(block)] if after_heading else [".Pp", roff(block)]
    return "\n".join(lines) + "\n"


print(HEAD + page(Path(sys.argv[1]).read_text()) + TAIL, end="")
