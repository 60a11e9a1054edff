"""What goes out with a release: a page, a record for registries, and a check of the file."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpsc import GramRelease, Release
from dpsc.cli.terminal import Interrupted
from dpsc.ledger import Ledger
from dpsc.release import describe, dossier, file_format
from dpsc.release.file_format import sha256
from tests.cli.conftest import quick, unbooked
from tests.release.test_file_check import donors, with_noise

pytestmark = pytest.mark.usefixtures("drawn")
COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-6)


def release(files: Path, *more: object, out: str = "donors.dpsc.json") -> tuple[int, str, str]:
    return quick("release", files / "donors.csv", *COLUMNS, *BUDGET, *more, *unbooked(*more), "-o", files / out)


@pytest.fixture(scope="module")
def released(written: Path, drawn: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release and its page, made once."""
    folder = Path(shutil.copytree(written, tmp_path_factory.mktemp("released"), dirs_exist_ok=True))
    code, _, err = release(folder, "--provenance", "costs in <euros>", "--no-ledger")
    assert code == 0, err
    return folder


@pytest.fixture
def made(files: Path, released: Path) -> Path:
    for name in ("donors.dpsc.json", "donors.dpsc.html"):
        shutil.copy(released / name, files)
    return files / "donors.dpsc.json"


def test_the_page_is_a_function_of_the_release_file_alone(made: Path) -> None:
    page = made.with_name("donors.dpsc.html").read_text(encoding="utf-8")
    assert page == Release.page_of(made)
    again = made.with_name("again.html")
    for name in ("donors.csv", "panel.csv", "donors.dpsc.html"):
        (made.parent / name).unlink()
    assert quick("inspect", made, "--page", again)[0] == 0
    assert again.read_text(encoding="utf-8") == page


def test_the_page_says_what_a_receiver_needs(made: Path) -> None:
    page = html.unescape(made.with_name("donors.dpsc.html").read_text(encoding="utf-8"))
    for said in (
        "400 donors", "from 2020-01 to 2021-06", "73.1%", "% of the 400 donors", sha256(made),
        Release.load(made).identities[0], "one donor's whole record", "exact integer arithmetic", "replace one donor",
        "dpsc inspect donors.dpsc.json", "costs in <euros>",
    ):  # fmt: skip
        assert said in re.sub("<(?!euros)[^>]*>", "", page), said
    assert not re.search(r"patient \d", page)
    assert "on a diagonal entry" not in page
    assert "data:image/svg+xml" in page
    assert "http" not in re.sub(r"data:image[^\"]*", "", page)  # nothing is fetched


def test_the_commands_on_the_page_work(made: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    page = made.with_name("donors.dpsc.html").read_text(encoding="utf-8")
    shell, python, checks = (html.unescape(text) for text in re.findall("<pre>(.*?)</pre>", page, flags=re.DOTALL))
    monkeypatch.chdir(made.parent)
    for line in [*shell.splitlines(), *checks.splitlines()]:
        assert line.startswith("dpsc ")
        code, out, err = quick(*line.split()[1:])
        assert code == 0, (out, err)
    assert len(python.splitlines()) == 4
    exec(python, {})
    assert "average effect" in capsys.readouterr().out.lower()


def test_a_page_of_yearly_donors_has_code_that_works_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    frame = pd.DataFrame(donors(300, 12), columns=list(range(2010, 2022)))
    GramRelease(epsilon=1.0, delta=1e-6, scale=5.0).release(frame, dataset=None).save(tmp_path / "years.json")
    pd.DataFrame({"year": frame.columns, "x": frame.iloc[0]}).to_csv(tmp_path / "target.csv", index=False)
    python = re.findall("<pre>(.*?)</pre>", Release.page_of(tmp_path / "years.json"), flags=re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    exec(html.unescape(python), {})


def test_no_page_if_none_is_wanted(files: Path) -> None:
    assert release(files, "--no-page")[0] == 0
    assert not (files / "donors.dpsc.html").exists()


def test_a_page_that_is_in_the_way_is_refused_before_anything_is_booked(files: Path) -> None:
    book = files / "book.sqlite"
    Ledger(book, create=True).add_dataset("patients", epsilon=2.0, delta=1e-6)
    (files / "donors.dpsc.html").write_text("mine")
    for more in ((), ("--dry-run",)):
        code, _, err = release(files, "--ledger", book, *more)
        assert (code, "donors.dpsc.html already exists" in err) == (2, True)
    code, _, err = release(files, "--ledger", book, out="donors.html")
    assert (code, "donors.dpsc.json" in err) == (2, True)
    assert Ledger(book).entries("patients") == []
    assert (files / "donors.dpsc.html").read_text() == "mine"
    assert not (files / "donors.dpsc.json").exists()


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), Interrupted()])
def test_if_the_page_fails_the_release_that_was_paid_for_is_there(
    trouble: BaseException, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if somebody stops it: they would think that nothing was made, and pay again."""

    def broken(*arguments: Any) -> str:
        raise trouble

    book = files / "book.sqlite"
    Ledger(book, create=True).add_dataset("patients", epsilon=2.0, delta=1e-6)
    monkeypatch.setattr(describe, "page", broken)
    code, _, err = release(files, "--ledger", book)
    assert code == 0
    assert "The release is whole: dpsc inspect" in err
    assert [entry.state for entry in Ledger(book).entries("patients")] == ["confirmed"]
    assert Release.load(files / "donors.dpsc.json").n == 400
    assert not (files / "donors.dpsc.html").exists()


def test_inspect_says_the_noise_in_words_and_the_hash(made: Path) -> None:
    _, out, _ = quick("inspect", made)
    text = " ".join(out.replace("│", " ").split())
    assert describe.noise(Release.load(made)) in text
    assert f"SHA-256: {sha256(made)}" in text
    answer = json.loads(quick("inspect", made, "--json")[1])
    assert answer["sha256"] == sha256(made)
    assert 10 < answer["noise_in_donors"] < 100


# The sections and fields of the registry's schema (version: docs/guides/handover.md), and where it takes given words.
SCHEMA = {
    "basic": {"name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
              "data_product_sector", "publication_date"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters",
                     "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "trust_assumptions", "actors", "release_type",
                         "release_type_details", "data_source_type", "data_source_type_details", "access_type",
                         "access_type_details"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing",
                       "justification", "utility", "additional_information"},
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}  # fmt: skip
WORDS: dict[tuple[str, str], set[Any]] = {
    ("basic", "data_product_type"): {"Summary statistics"},
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
    ("administrative", "status"): {"Draft"},
    ("administrative", "tier"): {1, 2, 3},
}


def test_the_record_follows_the_schema_and_invents_nothing(made: Path) -> None:
    code, out, err = quick("inspect", made, "--record")
    assert code == 0, err
    record = json.loads(out)
    assert set(record) == {"url_slug", "deployment"}
    deployment = record["deployment"]
    assert {name: set(fields) for name, fields in deployment.items()} == SCHEMA
    for (section, field), words in WORDS.items():
        assert deployment[section][field] in words
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert deployment["privacy_loss"]["number_of_privacy_units"] == 400
    assert sha256(made) in deployment["implementation"]["additional_information"]
    assert "costs in <euros>" in deployment["basic"]["description"]
    assert deployment["basic"]["publication_date"] == Release.load(made).made_on
    unknown = {("basic", "intended_use"), ("basic", "data_product_region"), ("basic", "data_product_sector"),
               ("deployment_model", "actors"), ("deployment_model", "data_source_type"),
               ("implementation", "justification"), ("administrative", "registry_authors")}  # fmt: skip
    assert all(deployment[section][field] is None for section, field in unknown)
    assert deployment["basic"]["data_curators"] == [{"data_curator_name": None, "data_curator_type": None}]
    told = json.loads(quick("inspect", made, "--record", "--custodian", "North", "--intended-use", "a study")[1])
    assert told["deployment"]["basic"]["data_curators"][0]["data_curator_name"] == "North"
    assert told["deployment"]["basic"]["intended_use"] == "a study"


def test_mu_and_rho_of_the_record_are_those_of_the_guarantee(made: Path) -> None:
    loss = Release.load(made).guarantee.loss  # type: ignore[union-attr]
    details = json.loads(quick("inspect", made, "--record")[1])["deployment"]["privacy_loss"]
    said = details["privacy_parameters_details"]
    assert float(re.search(r"mu = ([\d.]+\d)", said)[1]) == pytest.approx(loss.mu_squared**0.5, rel=1e-5)  # type: ignore[index]
    assert float(re.search(r"rho = ([\d.]+\d)", said)[1]) == pytest.approx(loss.mu_squared / 2 + loss.rho, rel=1e-5)  # type: ignore[index]


def test_options_of_the_record_need_it(made: Path) -> None:
    code, _, err = quick("inspect", made, "--custodian", "North")
    assert (code, "--record" in err) == (2, True)


def test_a_release_without_a_guarantee_has_no_record(tmp_path: Path) -> None:
    GramRelease(epsilon=1.0, delta=1e-6, scale=5.0, seed=1).release(donors(60, 8)).save(tmp_path / "s.json")
    code, out, err = quick("inspect", tmp_path / "s.json", "--record")
    assert (code, out, "no guarantee" in err) == (2, "", True)
    assert "NOT PRIVATE" in Release.page_of(tmp_path / "s.json")


def test_an_audit_of_a_file_holds_for_an_honest_one(made: Path) -> None:
    code, out, err = quick("audit", made, "--sha256", sha256(made))
    assert code == 0, out + err
    assert "none is broken" in out
    assert "BROKEN" not in out
    assert "dpsc audit without a file attacks the software" in " ".join(out.split())
    answer = json.loads(quick("audit", made, "--json")[1])
    assert answer["holds"] is True
    assert {check["what"] for check in answer["checks"]} >= {"SHA-256", "file", "claim", "noise"}
    assert answer["not_shown"]


def tampered(path: Path, to: Path, **changes: Any) -> Path:
    """Edit a file as somebody would who knows the format, its checksum included."""
    body = json.loads(path.read_text(encoding="utf-8"))
    body.pop("checksum")
    for name, value in changes.items():
        part, key = (body, name) if "__" not in name else (body[name.split("__")[0]], name.split("__")[1])
        part[key] = value
    body["checksum"] = file_format.checksum_of(body)
    to.write_text(json.dumps(body), encoding="utf-8")
    return to


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"guarantee__epsilon": 0.5}, "epsilon"),
        ({"noise__diagonal": 2e11, "noise__off_diagonal": 2e11 / 2**0.5}, "less noise than it claims"),
        ({"n": 650}, "the file says 650"),
        ({"sites": 2}, "less noise than it claims"),
        ({"made_on": "yesterday"}, "day"),
    ],
)
def test_a_file_that_was_edited_with_its_checksum_is_caught(made: Path, changes: dict[str, Any], why: str) -> None:
    code, out, _ = quick("audit", tampered(made, made.with_name("t.json"), **changes), "--json")
    answer = json.loads(out)
    failed = [check["why"] for check in answer["checks"] if check["verdict"] == "broken"]
    assert (code, answer["holds"], len(failed)) == (1, False, 1)
    assert why in failed[0]


def test_a_file_whose_noise_was_removed_is_caught(tmp_path: Path) -> None:
    with_noise(0.0).save(tmp_path / "bare.json")
    code, out, _ = quick("audit", tmp_path / "bare.json")
    assert (code, "noise is missing" in " ".join(out.replace("│", " ").split())) == (1, True)


def test_an_edited_file_and_another_file_are_caught(made: Path) -> None:
    edited = made.with_name("edited.json")
    edited.write_text(made.read_text(encoding="utf-8").replace('"n": 400', '"n": 401'), encoding="utf-8")
    code, out, _ = quick("audit", edited)
    assert (code, "checksum" in out) == (1, True)
    code, out, _ = quick("audit", made, "--sha256", sha256(edited))
    assert (code, "this is another file" in out) == (1, True)


def test_a_file_that_is_not_there_and_options_of_the_attack_are_mistakes(made: Path) -> None:
    assert quick("audit", made.with_name("none.json"))[0] == 2
    code, _, err = quick("audit", made, "--thorough")
    assert (code, "for attacks" in err) == (2, True)
    assert quick("audit", "--sha256", "00")[0] == 2


def test_older_files_have_a_page_and_a_check(tmp_path: Path) -> None:
    for old in (Path(__file__).parent.parent / "release").glob("*.dpsc.json"):
        assert "0.1.0" in Release.page_of(old)
        assert quick("audit", old)[0] == 0, old


def test_a_dossier_is_a_function_of_the_release_file_and_what_was_said(made: Path) -> None:
    out = made.parent / "out"
    for name in ("donors.csv", "panel.csv", "donors.dpsc.html"):
        (made.parent / name).unlink()
    code, screen, err = quick("inspect", made, "--dossier", out, "--custodian", "North", "--intended-use", "a study")
    assert code == 0, err
    assert f"Open {out / 'dossier.html'}" in " ".join(screen.split())
    assert {path.name for path in out.iterdir()} == set(dossier.NAMES)
    text = (out / "dossier.md").read_text("utf-8")
    assert "| who publishes the file | North |" in text
    assert f"SHA-256 of the file: {sha256(made)}." in text
    assert json.loads((out / "record.json").read_text("utf-8")) == json.loads(
        quick("inspect", made, "--record", "--custodian", "North", "--intended-use", "a study")[1]
    )
    assert not re.search(r"patient \d", text)


def test_a_dossier_replaces_nothing_unless_it_is_told_to(made: Path) -> None:
    out = made.parent / "out"
    out.mkdir()
    (out / "dossier.md").write_text("signed")
    code, _, err = quick("inspect", made, "--dossier", out)
    assert (code, "choose another folder with --dossier" in err) == (2, True)
    assert (out / "dossier.md").read_text() == "signed"
    assert quick("inspect", made, "--dossier", out, "--force")[0] == 0
    assert (out / "dossier.md").read_text("utf-8").startswith("# Privacy dossier of donors.dpsc.json")
    for place in (made, made.parent):  # the release itself, and the folder that it is in
        code, _, err = quick("inspect", made, "--dossier", place, "--force")
        assert (code, "read by this command" in err) == (2, True)
    assert Release.load(made).n == 400


def test_a_release_without_a_guarantee_has_a_dossier_that_says_so(tmp_path: Path) -> None:
    GramRelease(epsilon=1.0, delta=1e-6, scale=5.0, seed=1).release(donors(60, 8)).save(tmp_path / "s.json")
    code, _, err = quick("inspect", tmp_path / "s.json", "--dossier", tmp_path / "out")
    assert code == 0, err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"dossier.html", "dossier.md"}
    assert "**NOT PRIVATE. This file carries no privacy guarantee" in (tmp_path / "out" / "dossier.md").read_text(
        "utf-8"
    )
