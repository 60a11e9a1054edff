"""Donors in an object store: a folder of many files on a local S3 server, and what is said when it does not answer."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from dpsc import scan
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.sources import source_of
from dpsc.errors import ParameterError, TableError
from dpsc.tables import places
from dpsc.tables.places import Remote, place_of
from dpsc.types import Array
from tests.cli.conftest import quick
from tests.making import SECRET, long, row_map, told, wide

N, T = 400, 5
PRODUCTS = Products(row_map(T, directions=4))
NAMES: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost"}
WIDE: dict[str, Any] = {"unit": "who", "wide": True}


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """Start a server on this machine, with credentials and address in the environment, as usual."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "DEFAULT_REGION": "eu-central-1"}.items():
            patch.setenv(f"AWS_{name}", value)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        boto3 = pytest.importorskip("boto3")
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        places._store.cache_clear()
        client = boto3.client("s3")
        client.create_bucket(Bucket="clinic", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        yield client
        server.stop()
    places._store.cache_clear()


@pytest.fixture(scope="module")
def donors() -> Array:
    return np.round(np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1), 6)


def put(store: Any, key: str, write: Callable[[Any], Any]) -> None:
    content = io.BytesIO()
    write(content)
    store.put_object(Bucket="clinic", Key=key, Body=content.getvalue())


def expected(donors: Array) -> Any:
    return source_of(donors).add_up(PRODUCTS, lambda rows: None)[0]


@pytest.mark.parametrize(("engine", "files"), [("auto", 20), ("stream", 200)])
def test_a_folder_of_many_files_gives_the_same_integers(donors: Array, store: Any, engine: Any, files: int) -> None:
    table = long(donors)
    for part in range(files):
        rows = table.iloc[part::files]  # a donor's rows are in several files
        put(store, f"visits/{part:03}.parquet", partial(rows.to_parquet, index=False))
    store.put_object(Bucket="clinic", Key="visits/_SUCCESS", Body=b"")
    total, n = scan("s3://clinic/visits", **NAMES, engine=engine).add_up(PRODUCTS, lambda rows: None)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "feather"])
def test_every_kind_of_file_is_read(donors: Array, store: Any, ending: str, tmp_path: Path) -> None:
    from tests.making import save

    file = save(wide(donors), tmp_path / f"donors.{ending}")
    store.put_object(Bucket="clinic", Key=f"one/donors.{ending}", Body=file.read_bytes())
    total, n = scan(f"s3://clinic/one/donors.{ending}", **WIDE).add_up(PRODUCTS, lambda rows: None)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_what_the_store_refuses_or_lacks_is_told_in_a_sentence(donors: Array, store: Any, tmp_path: Path) -> None:
    store.put_object(Bucket="clinic", Key="bad/donors.csv", Body=f"who,w1,w2\na,1,2\nb,{SECRET} euros,2\n".encode())
    store.put_object(Bucket="clinic", Key="bad/broken.parquet", Body=b"PAR1 half of it")
    store.put_object(Bucket="clinic", Key="bad/book.xlsx", Body=b"PK")
    for address, words in {
        "s3://clinic/nothing/here.csv": "no such file or folder",
        "s3://no-such-bucket/a.csv": "no such file or folder|did not answer|refused",
        "s3://clinic/bad/donors.csv": "line 3",
        "s3://clinic/bad/broken.parquet": "is it really Parquet, and complete",
        "s3://clinic/bad/book.xlsx": "read from this machine only",
    }.items():
        with pytest.raises(TableError, match=words) as raised:
            scan(address, **WIDE).add_up(Products(row_map(2)), lambda rows: None)
        assert not told(str(raised.value))
        assert str(raised.value).startswith(address)


def test_a_file_that_vanishes_meanwhile_is_named(donors: Array, store: Any) -> None:
    for part in range(3):
        rows = wide(donors[part::3])
        put(store, f"going/{part}.parquet", partial(rows.to_parquet, index=False))
    source = scan("s3://clinic/going", **WIDE, engine="stream")
    assert source.times is not None
    store.delete_object(Bucket="clinic", Key="going/2.parquet")
    with pytest.raises(TableError, match=r"^s3://clinic/going/2.parquet: (there is no such file|the store did not)"):
        source.add_up(PRODUCTS, lambda rows: None)


def test_a_refusal_of_the_store_says_to_check_the_credentials(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers 403 to everything."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Forbidden(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Forbidden)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    places._store.cache_clear()
    try:
        with pytest.raises(TableError, match="refused to show it; check the credentials"):
            scan("s3://clinic/visits", **NAMES).add_up(PRODUCTS, lambda rows: None)
    finally:
        server.shutdown()
        server.server_close()
        places._store.cache_clear()


def test_a_command_reads_from_a_store(donors: Array, store: Any, tmp_path: Path) -> None:
    put(store, "command/donors.parquet", partial(wide(donors).to_parquet, index=False))
    said = ["--unit", "who", "--wide", "--epsilon", "1", "--delta", "1e-6"]
    code, out, err = quick(
        "release", "--no-ledger", "s3://clinic/command/donors.parquet", *said, "-o", tmp_path / "a.dpsc.json"
    )
    assert code == 0, err
    assert "400 donors" in out


def test_a_store_that_only_fsspec_knows_is_read(donors: Array) -> None:
    memory = fsspec.filesystem("memory")
    for part in range(3):
        memory.pipe(f"/clinic/region={part}/part.csv", wide(donors).iloc[part::3].to_csv(index=False).encode())
    total, n = scan("memory://clinic", **WIDE).add_up(PRODUCTS, lambda rows: None)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_google_has_a_file_system() -> None:
    filesystem, name = place_of("gs://bucket/folder/a.csv").store  # type: ignore[attr-defined]
    assert (filesystem.type_name, name) == ("gcs", "bucket/folder/a.csv")


def test_a_store_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ParameterError, match="cannot read from nonsense://"):
        scan("nonsense://bucket/a.csv", unit="who", wide=True).add_up(PRODUCTS, lambda rows: None)


def test_an_address_is_a_path_in_all_that_paths_are_used_for() -> None:
    place = place_of("s3://bucket/folder/part=1/a.csv.gz")
    assert isinstance(place, Remote)
    assert (str(place), place.name, place.suffix) == ("s3://bucket/folder/part=1/a.csv.gz", "a.csv.gz", ".gz")
    assert str(place.parent) == "s3://bucket/folder/part=1"
    assert str(place.relative_to(place.parent.parent)) == "part=1/a.csv.gz"
    assert place_of(place) is place
