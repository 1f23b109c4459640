"""What a page of an experiment says, for tests."""

import re


def parts(page: str) -> dict[str, dict[str, list[str]]]:
    """By heading the tables' rows by their first cell."""
    found: dict[str, dict[str, list[str]]] = {}
    for heading, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        cells = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("| ")
        ]
        found[heading] = {row[0]: row[1:] for row in cells}
    return found
