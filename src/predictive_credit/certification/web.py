"""The web through a recording gateway, and the byte-exact replay of what it recorded.

Only the main run reads live; before it is registered its pages are looked at, and nothing of that is
kept. Whatever it saw, challengers get whole and branches get again; an address outside the record is not
served, so nobody after the main run sees a newer or another page.
"""

from __future__ import annotations

import http
import http.client
import ipaddress
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import SplitResult, urljoin, urlsplit

from predictive_credit import canonical, tables
from predictive_credit.certification.episodes import Denied
from predictive_credit.certification.ledger import marked
from predictive_credit.errors import BadConfig, Tampered

TYPES = ("text/plain", "text/html", "application/json")
REDIRECTS = (301, 302, 303, 307, 308)
KEPT = ("content-type", "content-length", "date", "etag", "last-modified", "location")
PORTS = {"https": 443, "http": 80}
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
Resolve = Callable[[str, int], list[str]]
Record = Callable[[str, Mapping[str, Any]], object]


def addresses(host: str, port: int) -> list[str]:
    """The numeric addresses of a host. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the gateway lets through. `loopback`: plain HTTP too, on any port, and this machine alone."""

    hosts: frozenset[str]
    requests: int = 20  # hops included
    redirects: int = 5
    bytes: int = 1_000_000  # of one page
    total_bytes: int = 10_000_000
    timeout: float = 20.0  # seconds without a byte
    deadline: float = 60.0  # seconds of one request, whatever comes
    loopback: bool = False


def limits(urls: Sequence[str]) -> Limits:
    """Limits within which these addresses, and others of their hosts, may be read.

    Raises BadConfig for one that may not be: the hosts must be public and read over HTTPS, or all of
    them this machine's own.
    """
    try:
        hosts = frozenset(urlsplit(url).hostname or "" for url in urls)
        told = Limits(hosts=hosts, loopback=bool(hosts) and hosts <= LOOPBACK)
    except ValueError:
        raise BadConfig(f"one of {', '.join(urls)} is no address; correct it") from None
    for url in urls:
        try:
            _split(url, told)
        except Denied as error:
            raise BadConfig(
                f"{url} may not be read: {error}; give https addresses, or http ones of this machine alone"
            ) from None
    return told


def unreadable(urls: Sequence[str], limits: Limits) -> dict[str, str]:
    """Which of these addresses cannot be read now, and why. What comes is looked at and thrown away."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(Path(folder), limits, lambda event_type, payload: None)
        for url in dict.fromkeys(urls):
            try:
                status = gateway.fetch(url)["http_status"]
            except Denied as error:
                found[url] = str(error)
                continue
            if not http.HTTPStatus.OK <= status < http.HTTPStatus.MULTIPLE_CHOICES:
                found[url] = f"the answer was {status}"
    return found


@dataclass(frozen=True, kw_only=True)
class Page:
    """One recorded page: where it came from, and the digests of its bytes and of the text that was shown."""

    url: str  # as asked
    final_url: str
    status: int
    headers: Mapping[str, str]
    redirects: tuple[str, ...]
    peer: str
    size: int
    raw_digest: str
    text_digest: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Every page that was seen. Serves exactly these addresses, from the bytes of `folder`."""

    pages: tuple[Page, ...] = ()
    folder: Path = Path()
    live: ClassVar[bool] = False

    @property
    def digest(self) -> str:
        """Wobs: of all pages' records, in the order of their addresses."""
        return marked(sorted(canonical.encode(page).decode() for page in self.pages))

    def fetch(self, url: str) -> Mapping[str, Any]:
        """The page as it was shown. Raises Denied for an address that is not recorded to the letter."""
        for page in self.pages:
            if page.url == url:
                return _shown(page, self._object(page.text_digest).decode())
        raise Denied("this address is not in the snapshot")

    def raw(self, url: str) -> bytes:
        """The bytes that came. Raises Denied, or Tampered if they are not those recorded."""
        for page in self.pages:
            if page.url == url:
                return self._object(page.raw_digest)
        raise Denied("this address is not in the snapshot")

    def texts(self) -> tuple[Mapping[str, Any], ...]:
        """All shown texts by address: neither when, nor how often, nor in which order they were read."""
        return tuple(
            {"url": p.url, "text": self.fetch(p.url)["text"]} for p in sorted(self.pages, key=lambda p: p.url)
        )

    def _object(self, digest: str) -> bytes:
        data = tables.read_bytes(self.folder / "objects" / digest)
        if canonical.digest_bytes(data) != digest:
            raise Tampered(f"{self.folder / 'objects' / digest} is not what was recorded; restore the file")
        return data


def _shown(page: Page, text: str) -> dict[str, Any]:
    return {"url": page.url, "http_status": page.status, "text": text}


class Gateway:
    """Reads pages for the main run, within its limits, and records each; an address is read once."""

    live: ClassVar[bool] = True

    def __init__(self, folder: Path, limits: Limits, record: Record, *, resolve: Resolve = addresses) -> None:
        self._folder, self._limits, self._record, self._resolve = folder, limits, record, resolve
        manifest = folder / "snapshot.json"
        kept = tables.read_json(manifest) if manifest.exists() else []
        self._pages = [tables.record_of(row, Page, manifest.name) for row in kept]
        self._count = folder / "requests.json"  # hops and refused ones too, for a run that is gone on with
        self._requests = int(tables.read_json(self._count)) if self._count.exists() else 0

    def snapshot(self) -> Snapshot:
        """What was recorded so far."""
        return Snapshot(pages=tuple(self._pages), folder=self._folder)

    def fetch(self, url: str) -> Mapping[str, Any]:
        """The page, from the record if it is there, else live. Raises Denied."""
        if any(page.url == url for page in self._pages):
            return self.snapshot().fetch(url)
        self._record("web_request_started", {"url": url})
        try:
            page, text = self._capture(url)
        except Denied as error:
            self._record("web_request_refused", {"url": url, "reason": str(error)})
            raise
        self._pages.append(page)
        tables.write_json(self._folder / "snapshot.json", self._pages)
        self._record("web_page_captured", {"page": page})
        return _shown(page, text)

    def _capture(self, url: str) -> tuple[Page, str]:
        chain = [url]
        while True:
            hop = self._hop(chain[-1])
            if hop.status not in REDIRECTS or "location" not in hop.headers:
                break
            if len(chain) > self._limits.redirects:
                raise Denied("too many redirects")
            try:
                chain.append(urljoin(chain[-1], hop.headers["location"]))
            except ValueError:
                raise Denied("it leads to what is no address") from None
        text = _text(hop.body, hop.headers.get("content-type", ""))
        data = text.encode()
        page = Page(
            url=url, final_url=chain[-1], status=hop.status, headers=hop.headers,
            redirects=tuple(chain[1:]), peer=hop.peer, size=len(hop.body),
            raw_digest=canonical.digest_bytes(hop.body), text_digest=canonical.digest_bytes(data),
        )  # fmt: skip
        tables.write_bytes(self._folder / "objects" / page.raw_digest, hop.body)
        tables.write_bytes(self._folder / "objects" / page.text_digest, data)
        return page, text

    def _hop(self, url: str) -> _Hop:
        """One request, after its address and where that leads were checked."""
        parts = _split(url, self._limits)
        if self._requests >= self._limits.requests:
            raise Denied("no requests left")
        self._requests += 1
        tables.write_json(self._count, self._requests)
        host, port = str(parts.hostname), parts.port or PORTS[parts.scheme]
        try:
            peer = _public(self._resolve(host, port), self._limits)
            room = self._limits.total_bytes - sum(page.size for page in self._pages)
            with _deadline(self._limits.deadline) as watch:
                return _request(parts, peer, port, self._limits, min(self._limits.bytes, room), watch)
        # A host that is no name ends in a UnicodeError when it is looked up.
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise Denied(f"not reached: {type(error).__name__}") from None


@dataclass(frozen=True, kw_only=True)
class _Hop:
    status: int
    headers: Mapping[str, str]
    body: bytes
    peer: str


def _split(url: str, limits: Limits) -> SplitResult:
    """The parts of an address that may be read. Raises Denied."""
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > 2000:
        raise Denied("the address holds characters it may not")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Denied("this is no address") from None
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise Denied("the address carries credentials")
    if parts.fragment or not parts.hostname:
        raise Denied("the address needs a host and no fragment")
    if parts.hostname not in limits.hosts:
        raise Denied(f"{parts.hostname} is not on the list of hosts")
    if parts.scheme != "https" and not (limits.loopback and parts.scheme == "http"):
        raise Denied("only https is read")
    if port not in (None, PORTS[parts.scheme]) and not limits.loopback:
        raise Denied("only the default port is read")
    return parts


def _public(found: list[str], limits: Limits) -> str:
    """The address to connect to. All of a host's must be public, or it could be led inside. Raises Denied."""
    if not found:
        raise Denied("the host has no address")
    for text in found:
        address = _reached(ipaddress.ip_address(text.partition("%")[0]))
        if limits.loopback and address.is_loopback:
            continue
        if limits.loopback or not address.is_global or address.is_multicast:
            raise Denied(f"{text} is not a public address")
    return found[0]


def _reached(address: Address) -> Address:
    """The address itself, or the IPv4 address that a transition form of IPv6 leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


@contextmanager
def _deadline(seconds: float) -> Iterator[Callable[[socket.socket], None]]:
    """Hangs up a socket that is watched, however slowly it still gives bytes. Raises Denied then."""
    expired = threading.Event()
    timers: list[threading.Timer] = []

    def hang_up(watched: socket.socket) -> None:
        expired.set()
        with suppress(OSError):
            watched.shutdown(socket.SHUT_RDWR)

    def watch(watched: socket.socket) -> None:
        timers.append(threading.Timer(seconds, hang_up, (watched,)))
        timers[-1].daemon = True
        timers[-1].start()

    try:
        yield watch
    finally:
        for timer in timers:
            timer.cancel()
        if expired.is_set():  # what came until then is no page
            raise Denied(f"it took longer than {seconds:g} seconds")


def _request(
    parts: SplitResult,
    peer: str,
    port: int,
    limits: Limits,
    most: int,
    watch: Callable[[socket.socket], None],
) -> _Hop:
    """GET without cookies or credentials, from the address that was checked and no other."""
    host = str(parts.hostname)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=limits.timeout)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=limits.timeout)
    try:
        connection.sock = _connect(parts.scheme, host, peer, port, limits.timeout)
        watch(connection.sock)
        accepted = {
            "Accept": ", ".join(TYPES),
            "Accept-Encoding": "identity",
            "User-Agent": "predictive-credit",
        }
        connection.request("GET", target, headers=accepted)
        response = connection.getresponse()
        headers = {k.lower(): v for k, v in response.getheaders() if k.lower() in KEPT}
        if response.status in REDIRECTS:
            return _Hop(status=response.status, headers=headers, body=b"", peer=peer)
        if response.getheader("Content-Encoding", "identity") != "identity":
            raise Denied("the page is encoded")
        body = response.read(most + 1)
        if len(body) > most:
            raise Denied(f"the page is larger than {most} bytes")
        return _Hop(status=response.status, headers=headers, body=body, peer=peer)
    finally:
        connection.close()


def _connect(scheme: str, host: str, peer: str, port: int, timeout: float) -> socket.socket:
    plain = socket.create_connection((peer, port), timeout=timeout)
    if scheme == "http":
        return plain
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def _text(body: bytes, content_type: str) -> str:
    """What a model is shown of a page. Raises Denied on another type or text that cannot be read."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if kind not in TYPES:
        raise Denied(f"{kind or 'a page without a type'} is not read, only {', '.join(TYPES)}")
    charset = next((p.partition("=")[2].strip('"') for p in parameters if p.startswith("charset=")), "utf-8")
    try:
        text = body.decode(charset)
        text.encode()  # some character sets decode to what no other can write
    except (LookupError, UnicodeError):
        raise Denied("the page's characters cannot be read") from None
    try:
        return _Visible.of(text) if kind == "text/html" else text
    except AssertionError:  # how the library's parser ends on some malformed declarations
        raise Denied("the page's HTML cannot be read") from None


@dataclass
class _Visible(HTMLParser):
    """Collects the text of a page outside scripts and styles, one line a block."""

    lines: list[str] = field(default_factory=list)
    hidden: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, html: str) -> str:
        """The visible text."""
        reader = cls()
        reader.feed(html)
        reader.close()
        return "\n".join(_nonblank(reader.lines))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Scripts, styles and the like are not text."""
        self.hidden += tag in ("script", "style", "template", "noscript")

    def handle_endtag(self, tag: str) -> None:
        """Their end."""
        self.hidden -= self.hidden > 0 and tag in ("script", "style", "template", "noscript")

    def handle_data(self, data: str) -> None:
        """A piece of text."""
        if not self.hidden:
            self.lines.append(data)


def _nonblank(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if text := " ".join(line.split()):
            yield text
