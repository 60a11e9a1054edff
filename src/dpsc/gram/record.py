"""A release as a record for a registry of differential-privacy deployments: what is public about it, or null.

The fields are those of the Differential Privacy Deployments Registry (docs/handover.md says which version). What its
file does not tell is null here, for the custodian to fill in; nothing is guessed.
"""

from __future__ import annotations

from typing import Any

from dpsc.answers.words import meaning
from dpsc.data.dates import period_name
from dpsc.errors import ReleaseError
from dpsc.gram import release_words
from dpsc.gram.contents import ReleasedMatrix


def record(
    release: ReleasedMatrix, sha256: str, *, custodian: str | None = None, intended_use: str | None = None
) -> dict[str, Any]:
    """Return the record; ``sha256`` is the hash of the release's file."""
    guarantee = release.guarantee
    if guarantee is None:
        raise ReleaseError(f"this release has no guarantee to register: {release.no_guarantee}.")
    return {
        "url_slug": f"dpsc-release-{release.identities[0][:12]}",
        "deployment": {
            "basic": {
                "name": f"Private second moments and mean of {release.outcome}, {release_words.span(release)}",
                "data_curators": [{"data_curator_name": custodian, "data_curator_type": None}],
                "description": _description(release),
                "intended_use": intended_use,
                "data_product_type": "Summary statistics",
                "data_product_region": None,
                "data_product_sector": None,
                "publication_date": release.made_on or None,
            },
            "dp_variant": {
                "variant_name": "Pure DP" if guarantee.delta == 0 else "Approximate DP",
                "data_domain": f"one row per donor: {release.outcome} in {release_words.span(release)}; any "
                "numbers, of which some may be missing, brought to length one by a public map of the donor's own row",
                "unprotected_quantities": f"the number of donors ({release.n}) and the order of their rows; the "
                "periods, the outcome's name, the kernel, the reference path, bounds and every other parameter",
            },
            "privacy_loss": {
                "privacy_unit": "Donor: one unit's whole record, every value in every period",
                "privacy_unit_details": f"Neighbours: {guarantee.adjacency}. Two data sets are adjacent if they have "
                "the same number of rows and differ in one row, which may be any other row (change-one distance "
                "at most 1).",
                "number_of_privacy_units": release.n,
                "privacy_parameters": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
                "privacy_parameters_details": " ".join(
                    [f"Accounting: {release_words.accounting(release) or 'epsilon and delta'}.", *meaning(guarantee)]
                ),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "Each custodian sees its own donors only; noisy matrices were added up."
                if release.sites > 1
                else None,
                "trust_assumptions": "Donors trust the custodian, who holds their records and draws the noise. Nobody "
                "who receives the release needs to be trusted, whatever else they know.",
                "actors": None,
                "release_type": "One release",
                "release_type_details": "This record is about one file. Other releases of the same donors, and how "
                "their losses add up, are in the custodian's ledger.",
                "data_source_type": None,
                "data_source_type_details": None,
                "access_type": "Non-interactive",
                "access_type_details": "Answers are computed from the file and cost nothing more.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"Scale: {release_words.scale(release)}. Smoothness: "
                f"{release_words.kernel(release)}. Directions: {release_words.directions(release)}. Reference path: "
                f"{release_words.reference(release)}. Periods: {release_words.periods(release)}. They must "
                "be chosen without looking at donors, but for what the scale cost, which is part of epsilon; the file "
                "cannot show that they were.",
                "mechanisms": f"{release_words.mechanism(release)}. Software: {release.made_by}.",
                "composition": f"Merged from {release.sites} sites with different donors: parallel composition."
                if release.sites > 1
                else "Donors were counted for the scale, then came the matrix: adaptive composition within epsilon."
                if release.scale.share > 0
                else "One mechanism.",
                "post_processing": "None in the file.",
                "justification": None,
                "utility": f"The noise is {release_words.noise(release)}; {release_words.seen(release)}.",
                "additional_information": "; ".join(_about_the_file(release, sha256)),
            },
            "administrative": {"evidence_sources": None, "status": "Draft", "registry_authors": None, "tier": 2},
        },
    }


def _description(release: ReleasedMatrix) -> str:
    what = (
        f"Noisy sums over {release_words.donors(release)} donors of how {release.outcome} moves, from "
        f"{period_name(release.times[0])} to {period_name(release.times[-1])}: what synthetic control needs to say "
        "what would have happened to another unit without an intervention."
    )
    return f"{what} {release.provenance}".strip()


def _about_the_file(release: ReleasedMatrix, sha256: str) -> list[str]:
    ledger = [f"data set in the custodian's ledger: {', '.join(release.datasets)}"] if release.datasets else []
    return [f"SHA-256 of the release file: {sha256}", f"identity: {', '.join(release.identities)}", *ledger]
