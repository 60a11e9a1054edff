"""What a dossier says of a release in words that depend on its kind, all of it from the release's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dpsc.privacy.guarantee import Guarantee, best_guess, mark_of
from dpsc.release import describe, describe_panel, verify
from dpsc.release.panel import ReleasedPanel
from dpsc.version import __version__

Made: TypeAlias = "describe.Released | ReleasedPanel"


@dataclass(frozen=True)
class About:
    """What is said of one release.

    Attributes
    ----------
    guarantee : Guarantee or None
    reason : str
        Why there is no guarantee, empty if there is one.
    is_ours : bool
        Whether dpsc made the numbers; others published a table if not.
    one, many : str
        Who is protected.
    same_version : bool
        Whether the file says that everything in it is from the version of dpsc that runs now.

    All others are sentences, or parts of them.
    """

    guarantee: Guarantee | None
    reason: str
    is_ours: bool
    one: str
    many: str
    what: str
    subjects: str
    kept: str
    not_kept: str
    outcome: str
    periods: str
    settings: str
    noise: str
    bias: str
    mechanism: str
    public: str
    protected: str
    membership: str
    composition: str
    made: str
    same_version: bool
    provenance: Sequence[str]
    datasets: Sequence[str]
    identities: Sequence[str]
    not_shown: Sequence[str]

    @property
    def none(self) -> str:
        """What stands wherever a guarantee would be, if there is none; the warning says why."""
        return "No guarantee of dpsc: see the first line."

    @property
    def warning(self) -> str:
        """What stands first, if there is no guarantee."""
        if self.guarantee is not None:
            return ""
        mark = mark_of(self.reason)
        advice = f" Do not publish it if {self.many} are to be protected." if mark == "NOT PRIVATE" else ""
        return f"{mark}. This file carries no privacy guarantee of dpsc: {self.reason}.{advice}"

    @property
    def guess(self) -> str:
        """How well somebody can guess a record."""
        if self.guarantee is None:
            return self.none
        right = best_guess(self.guarantee.epsilon, self.guarantee.delta)
        return (
            f"Someone who knows everything about all other {self.many}, and guesses which of two equally likely "
            f"records a {self.one} has, is right at most {right:.1%} of the time. A blind guess is right 50% of the "
            "time."
        )

    @property
    def booked(self) -> str:
        """Whether the file says which data set of a ledger paid."""
        if not self.is_ours:
            return "The file names no ledger."
        if not self.datasets:
            return "The file names no data set of a ledger, so nothing in it shows that it was booked."
        return f"The file names the data set of a ledger that paid for it: {', '.join(self.datasets)}."


def about(release: Made) -> About:
    """Return what is said of a release of either kind."""
    return _of_panel(release) if isinstance(release, ReleasedPanel) else _of_donors(release)


def _of_donors(release: describe.Released) -> About:
    parts = describe.parts_of(release)
    first, segments = parts[0], parts[0].segments
    moves = f"how {describe.outcomes(release)} {'move' if len(parts) > 1 else 'moves'}"
    noisy = "with noise on every number" if release.guarantee is not None else "without a guarantee"
    counted = any("counted" in part.scale.source for part in parts)
    scale = "a scale that was found from noisy counts of donors, " if counted else ""
    settings = {
        "Scale": describe.scale,
        "Smoothness": describe.kernel,
        "Directions": describe.directions,
        "Reference path": describe.reference,
    }
    return About(
        guarantee=release.guarantee,
        reason=first.no_guarantee,
        is_ours=True,
        one="donor",
        many="donors",
        what=f"sums over all donors of {moves}, {noisy}, {scale}and the exact number of donors",
        subjects=f"{first.n:,} donors. The file does not say who they are."
        + ("" if segments is None else f" Donors are divided {describe.segments(first)}."),
        kept=f"For {describe.outcomes(release)}, whole numbers in a matrix; the number of donors, the periods, the "
        "settings, the size of the noise, the guarantee, and the texts that are quoted here.",
        not_kept="The file has no place for a row, a label or a value of a single donor.",
        outcome=describe.outcomes(release),
        periods=describe.periods(first),
        settings=" ".join(f"{name}: {describe.of_each(release, say)}." for name, say in settings.items()),
        noise=f"The noise is {describe.of_each(release, describe.noise)}; {describe.of_each(release, describe.seen)}.",
        bias="Every donor counts as one, however large it is. The noise is the same for few donors as for many: what "
        "few of them share is seen less exactly.",
        mechanism=f"The file says: {describe.of_each(release, describe.mechanism)}.",
        public=f"the number of donors ({first.n:,}) and the order of their rows, the periods, the outcome's name and "
        "every setting" + ("" if segments is None else f", and the names of the segments ({segments})"),
        protected="one donor's whole record: every value in every period"
        + ("" if segments is None else ", and the donor's segment"),
        membership="That somebody is one of the donors is not covered: their exact number is public, and what is "
        "covered is replacing one donor by another, not adding or leaving out one.",
        composition=f"{len(parts)} outcomes of the same donors: their losses add up within epsilon."
        if len(parts) > 1
        else f"Merged from {first.sites} sites: the largest loss counts, if no donor is in two of them. Somebody gave "
        f"their word for this; the file cannot show it.{describe.more_each(first)}"
        if first.sites > 1
        else f"The mean of {len(first.identities)} releases of the same donors: their losses add up."
        if len(first.identities) > 1
        else "One release.",
        made=first.made_by + (f", {first.made_on}" if first.made_on else ""),
        same_version=first.made_by == f"dpsc {__version__}" and len(first.identities) == 1,
        provenance=[first.provenance] if first.provenance else [],
        datasets=first.datasets,
        identities=first.identities,
        not_shown=verify.NOT_SHOWN,
    )


def _of_panel(panel: ReleasedPanel) -> About:
    if panel.publisher:
        return _of_others(panel)
    rule = panel.rule
    counts = " and noisy numbers of people" if rule is not None and rule.counts_people else ""
    lengths = any(block.lengths is not None for block in panel.blocks)
    found = ", and noisy counts of people by length" if lengths else ""
    composition = "One release."
    if len(panel.blocks) > 1:
        composition = f"{len(panel.blocks)} releases in one file. Losses of releases of the same units add up."
    if len(panel.sites) > 1:
        composition += (
            f" Of its {len(panel.sites)} sites the largest loss counts, if their people are different. Somebody gave "
            "their word for this; the file cannot show it."
        )
    if lengths:
        composition += " Noisy counts of people by length are part of the loss."
    noisy = "with noise that hides each person" if panel.guarantee is not None else "without a guarantee"
    return About(
        guarantee=panel.guarantee,
        reason=panel.no_guarantee,
        is_ours=True,
        one="person",
        many="people",
        what=f"for each unit and period {describe_panel.statistic(panel)}, {noisy}{found}",
        subjects=f"People in units. The file does not say who they are. Units: {describe_panel.units(panel)}.",
        kept=f"The names of the units, the periods, noisy sums{counts} by unit and period, how each person was "
        "bounded, the size of the noise, the guarantee, and the texts that are quoted here.",
        not_kept="The file has no place for a record or an identifier of a person.",
        outcome=panel.outcome,
        periods=describe_panel.periods(panel),
        settings=f"Bounding: {describe_panel.bounding(panel)}.",
        noise=f"Noise: {describe_panel.noise(panel)}; {describe_panel.too_few(panel)}.",
        bias="What a person has beyond the bounds is cut off. The noise is the same for few people as for many: units "
        "with few of them are seen less exactly.",
        mechanism=f"The file says: {describe.mechanism(panel)}.",
        public="the units, the periods, the outcome's name, and how people were bounded",
        protected="all records of one person, in all units and periods, and whether the person is in the data at all",
        membership="Whether somebody is among the people is covered: all records of a person may be replaced by none.",
        composition=composition,
        made=describe_panel.made(panel),
        same_version={block.made_by for block in panel.blocks} == {f"dpsc {__version__}"},
        provenance=panel.provenances,
        datasets=panel.datasets,
        identities=panel.identities,
        not_shown=verify.PANEL_NOT_SHOWN,
    )


def _of_others(panel: ReleasedPanel) -> About:
    """Say of a table that others published what its file shows, which is little."""
    return About(
        guarantee=None,
        reason=panel.no_guarantee,
        is_ours=False,
        one="person",
        many="people",
        what="a table of units and periods that others published",
        subjects=f"Whoever the table is about. Units: {describe_panel.units(panel)}.",
        kept="The names of the units, the periods, the published values, and the size of the noise that is stated for "
        "each.",
        not_kept="Whether a number of the table is about one person, the file does not show.",
        outcome=panel.outcome,
        periods=describe_panel.periods(panel),
        settings="How people were bounded is not known.",
        noise=f"Noise, as it was stated: {describe_panel.noise(panel)}; {describe_panel.too_few(panel)}.",
        bias="Not known.",
        mechanism="Not known.",
        public="everything in the file",
        protected="nothing, as far as the file shows",
        membership="Whether somebody is among the people is not covered, as far as the file shows.",
        composition="Not known.",
        made="others",
        same_version=False,
        provenance=[],
        datasets=[],
        identities=[],
        not_shown=verify.PANEL_NOT_SHOWN,
    )
