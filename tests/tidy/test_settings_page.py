"""The page about settings names each one, with its default."""

import re
from pathlib import Path

from runlane.journal.settings import Settings

PAGE = Path(__file__).parents[2] / "docs/settings.md"


def test_the_page_names_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| `RUNLANE_(\w+)` \| (\S+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    shown = {name.lower(): default.strip("`") for name, default in rows}
    actual = Settings()
    assert shown == {
        name: f"{value:g}" if isinstance(value, float) else str(value).lower()
        for name in Settings.__struct_fields__
        for value in [getattr(actual, name)]
    }
