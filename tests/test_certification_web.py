"""The gateway reads what it may and keeps the bytes; the replay serves those and nothing else."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.certification.episodes import Denied
from predictive_credit.certification.web import Gateway, Limits, limits, unreadable
from predictive_credit.errors import BadConfig, Tampered

HTML = (
    b"<html><style>p{}</style><script>secret()</script><p>Partial   indexes</p><noscript>no</noscript>"
    b"<p>cover &amp; speed</p></html>"
)
PAGES: dict[str, tuple[int, str, bytes]] = {
    "/page": (200, "text/html; charset=utf-8", HTML),
    "/plain": (200, "text/plain; charset=latin-1", "caf\u00e9".encode("latin-1")),
    "/data": (200, "application/json", b'{"a": 1}'),
    "/picture": (200, "image/png", b"\x89PNG"),
    "/large": (200, "text/plain", b"x" * 3000),
    "/broken": (200, "text/plain; charset=utf-8", b"\xff\xfe"),
    "/missing": (404, "text/plain", b"not here"),
    "/nameless": (200, "text/plain; charset=undefined", b"abc"),
    "/half": (200, "text/plain; charset=utf-7", b"+2AA-"),
    "/marked": (200, "text/html", b"<p>a</p><![foo[x]]>"),
}
MOVED = {
    "/old": "/page",
    "/loop": "/loop",
    "/away": "http://elsewhere.example/page",
    "/inside": "https://127.0.0.1:1/x#y",
    "/nowhere": "http://[bad/",
}


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        if self.path in MOVED:
            self.send_response(302)
            self.send_header("Location", MOVED[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status, kind, body = PAGES[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Set-Cookie", "session=1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        site.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        yield site
        site.shutdown()
        thread.join()


@pytest.fixture
def site(server: ThreadingHTTPServer) -> str:
    server.seen.clear()  # type: ignore[attr-defined]
    return f"http://127.0.0.1:{server.server_port}"


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def __call__(self, event_type: str, payload: Any) -> None:
        self.events.append((event_type, payload))


def gateway(folder: Path, record: Recorder | None = None, **limits: Any) -> Gateway:
    told: dict[str, Any] = {"hosts": frozenset({"127.0.0.1"}), "loopback": True, "bytes": 2000} | limits
    return Gateway(folder, Limits(**told), record or Recorder())


def test_a_page_is_shown_as_text_and_kept_to_the_byte(site: str, tmp_path: Path) -> None:
    record = Recorder()
    live = gateway(tmp_path, record)
    shown = live.fetch(f"{site}/page")
    assert shown["text"] == "Partial indexes\ncover & speed"
    snapshot = live.snapshot()
    assert snapshot.raw(f"{site}/page") == HTML
    assert snapshot.fetch(f"{site}/page") == shown
    assert [name for name, _ in record.events] == ["web_request_started", "web_page_captured"]
    (page,) = snapshot.pages
    assert (page.status, page.peer, page.size) == (200, "127.0.0.1", len(HTML))
    assert "set-cookie" not in page.headers


@pytest.mark.parametrize(
    ("path", "text"), [("/plain", "caf\u00e9"), ("/data", '{"a": 1}'), ("/missing", "not here")],
    ids=["latin-1", "json", "404"],
)  # fmt: skip
def test_plain_text_json_and_error_pages_are_recorded(
    site: str, tmp_path: Path, path: str, text: str
) -> None:
    assert gateway(tmp_path).fetch(f"{site}{path}")["text"] == text


def test_requests_carry_neither_cookies_nor_credentials(
    site: str, tmp_path: Path, server: ThreadingHTTPServer
) -> None:
    live = gateway(tmp_path)
    live.fetch(f"{site}/page")
    live.fetch(f"{site}/plain")
    for _, headers in server.seen:  # type: ignore[attr-defined]
        assert not {"cookie", "authorization", "referer"} & {name.lower() for name in headers}


def test_an_address_is_read_once(site: str, tmp_path: Path, server: ThreadingHTTPServer) -> None:
    live = gateway(tmp_path)
    assert live.fetch(f"{site}/page") == live.fetch(f"{site}/page")
    assert gateway(tmp_path).fetch(f"{site}/page") == live.fetch(f"{site}/page")  # another day, same folder
    assert len(server.seen) == 1  # type: ignore[attr-defined]


def test_a_redirect_is_followed_and_its_chain_kept(site: str, tmp_path: Path) -> None:
    live = gateway(tmp_path)
    live.fetch(f"{site}/old")
    (page,) = live.snapshot().pages
    assert (page.url, page.redirects) == (f"{site}/old", (f"{site}/page",))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/picture", "image/png is not read"),
        ("/large", "larger than 2000 bytes"),
        ("/broken", "cannot be read"),
        ("/nameless", "characters cannot be read"),
        ("/half", "characters cannot be read"),
        ("/marked", "HTML cannot be read"),
        ("/nowhere", "no address"),
        ("/loop", "too many redirects"),
        ("/away", "not on the list"),
        ("/inside", "no fragment"),
    ],
    ids=[
        "type",
        "size",
        "characters",
        "charset",
        "surrogate",
        "html",
        "location",
        "loop",
        "host",
        "fragment",
    ],
)
def test_what_may_not_be_read_is_refused_and_leaves_no_page(
    site: str, tmp_path: Path, path: str, reason: str
) -> None:
    record = Recorder()
    live = gateway(tmp_path, record)
    with pytest.raises(Denied, match=reason):
        live.fetch(f"{site}{path}")
    assert live.snapshot().pages == ()
    assert record.events[-1][0] == "web_request_refused"


@pytest.mark.parametrize(
    "url",
    [
        "http://docs.example/page",
        "https://other.example/page",
        "https://docs.example:8443/page",
        "https://user:word@docs.example/page",
        "https://docs.example/page#part",
        "https://docs.example/a b",
        "https://docs.example\\@other.example/",
        "ftp://docs.example/page",
        "file:///etc/passwd",
        "https://docs.example:port/",
        "//docs.example/page",
        "https://d\u00f6cs.example/",
    ],
)
def test_an_address_outside_the_rules_is_never_resolved(tmp_path: Path, url: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(f"{host} was resolved")

    limits = Limits(hosts=frozenset({"docs.example"}))
    with pytest.raises(Denied):
        Gateway(tmp_path, limits, Recorder(), resolve=resolve).fetch(url)


@pytest.mark.parametrize(
    "found",
    [
        "127.0.0.1", "10.0.0.8", "169.254.169.254", "93.184.216.34 192.168.0.1", "::1", "fe80::1%eth0",
        "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1", "0.0.0.0", "",
    ],
)  # fmt: skip
def test_a_host_that_leads_to_an_inner_address_is_refused(tmp_path: Path, found: str) -> None:
    limits = Limits(hosts=frozenset({"docs.example"}))
    live = Gateway(tmp_path, limits, Recorder(), resolve=lambda host, port: found.split())
    with pytest.raises(Denied, match=r"public address|no address"):
        live.fetch("https://docs.example/page")


@pytest.mark.parametrize(
    ("urls", "loopback"),
    [
        (["https://docs.example/a", "https://www.docs.example/b"], False),
        (["http://127.0.0.1:8000/a", "http://localhost:9/b"], True),
    ],
)
def test_the_addresses_that_are_given_say_which_hosts_may_be_read(urls: list[str], loopback: bool) -> None:
    told = limits(urls)
    assert (len(told.hosts), told.loopback) == (2, loopback)


@pytest.mark.parametrize(
    "urls",
    [
        ["http://docs.example/a"],
        ["https://docs.example:8443/a"],
        ["https://docs.example/a#b"],
        ["https://me:word@docs.example/"],
        ["https://docs.example/", "http://127.0.0.1:8000/"],
        ["docs.example/a"],
        ["https://[docs.example/"],
        [""],
    ],
)
def test_an_address_that_may_never_be_read_is_one_sentence(urls: list[str]) -> None:
    with pytest.raises(BadConfig, match=r"may not be read: .*; give https|is no address"):
        limits(urls)


def test_requests_are_counted_hops_included(site: str, tmp_path: Path) -> None:
    live = gateway(tmp_path, requests=2)
    live.fetch(f"{site}/old")
    with pytest.raises(Denied, match="no requests left"):
        live.fetch(f"{site}/page")


def test_a_gateway_that_goes_on_remembers_what_was_refused(site: str, tmp_path: Path) -> None:
    with pytest.raises(Denied, match="is not read"):
        gateway(tmp_path, requests=2).fetch(f"{site}/picture")
    again = gateway(tmp_path, requests=2)
    again.fetch(f"{site}/page")
    with pytest.raises(Denied, match="no requests left"):
        again.fetch(f"{site}/data")


def test_a_server_that_gives_a_byte_now_and_then_is_hung_up_on(tmp_path: Path) -> None:
    ended = threading.Event()

    class Dripping(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()  # no length: an end would look like a whole page
            with suppress(OSError):
                while not ended.wait(0.02):
                    self.wfile.write(b"x")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as dripping:
        thread = threading.Thread(target=dripping.serve_forever, daemon=True)
        thread.start()
        live = gateway(tmp_path, bytes=10**6, total_bytes=10**6, deadline=0.2)
        with pytest.raises(Denied, match=r"it took longer than 0.2 seconds"):
            live.fetch(f"http://127.0.0.1:{dripping.server_port}/")
        ended.set()
        dripping.shutdown()
        thread.join()
    assert live.snapshot().pages == ()


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_host_that_is_no_name_is_refused_politely(tmp_path: Path, host: str) -> None:
    live = Gateway(tmp_path, Limits(hosts=frozenset({host})), Recorder())
    with pytest.raises(Denied, match="not reached"):
        live.fetch(f"https://{host}/")


def test_bytes_of_all_pages_are_limited_together(site: str, tmp_path: Path) -> None:
    live = gateway(tmp_path, total_bytes=len(HTML))
    live.fetch(f"{site}/page")
    with pytest.raises(Denied, match="larger than 0 bytes"):
        live.fetch(f"{site}/data")


def test_a_server_that_is_gone_is_refused_politely(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="not reached"):
        gateway(tmp_path, timeout=2.0).fetch("http://127.0.0.1:1/page")


def test_what_cannot_be_read_is_told_with_the_reason_and_nothing_is_kept(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    urls = [f"{site}{path}" for path in ("/page", "/missing", "/picture", "/old", "/loop")]
    assert unreadable(urls, limits(urls)) == {
        f"{site}/missing": "the answer was 404",
        f"{site}/picture": "image/png is not read, only text/plain, text/html, application/json",
        f"{site}/loop": "too many redirects",
    }
    assert list(tmp_path.iterdir()) == []


def test_the_replay_serves_recorded_addresses_to_the_letter(site: str, tmp_path: Path) -> None:
    live = gateway(tmp_path)
    live.fetch(f"{site}/page")
    snapshot = live.snapshot()
    for url in (f"{site}/page?", f"{site}/page/", f"{site}/PAGE", f"{site}/data"):
        with pytest.raises(Denied, match="not in the snapshot"):
            snapshot.fetch(url)


def test_texts_tell_no_order_and_the_digest_binds_every_byte(site: str, tmp_path: Path) -> None:
    one, two = gateway(tmp_path / "one"), gateway(tmp_path / "two")
    for path in ("/page", "/data"):
        one.fetch(f"{site}{path}")
    for path in ("/data", "/page"):
        two.fetch(f"{site}{path}")
    first, second = one.snapshot(), two.snapshot()
    assert first.texts() == second.texts()
    assert [set(text) for text in first.texts()] == [{"url", "text"}] * 2
    assert first.digest != gateway(tmp_path / "three").snapshot().digest


def test_a_changed_byte_is_tampered(site: str, tmp_path: Path) -> None:
    live = gateway(tmp_path)
    live.fetch(f"{site}/page")
    snapshot = live.snapshot()
    (tmp_path / "objects" / snapshot.pages[0].raw_digest).write_bytes(HTML + b" ")
    with pytest.raises(Tampered):
        snapshot.raw(f"{site}/page")
