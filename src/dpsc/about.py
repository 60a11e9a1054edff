"""What dpsc is, in the words that help, demo, consoles, README and the site share; a test holds the pages to them."""

from __future__ import annotations

WHAT = (
    "Synthetic control estimates what would have happened without an intervention, from units without it: the donors."
)
STORY = (
    "dpsc protects people: each donor with its whole series (patients, customers, firms), or each person inside the "
    "donors (regions, hospitals, shops).",
    "The custodian, who holds the records, publishes one small file, the release, with so much random noise that it "
    "tells almost nothing about anyone protected (differential privacy; epsilon says how little).",
    "Analysts ask this file as often as they like what would have happened to a unit without the intervention; the "
    "answers have intervals and cost no further privacy.",
)
