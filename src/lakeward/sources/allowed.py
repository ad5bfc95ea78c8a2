"""What sources may reach: hosts, files and references. Whatever they open is checked here first, at every opening.

Several people may share a workspace, and whoever can add a source could otherwise look through it at what only the
machine that runs Lakeward can reach. The lists are settings of who runs it: `sources.allowed_hosts`,
`sources.allowed_paths`, `sources.allowed_references`. Where one is not set, the owner and admins are not limited by it,
who could run code as this process anyway; all others may name nothing then.

A host's name is looked up once, and it is the addresses which were found and checked that are connected to: a name
that leads elsewhere a moment later does no harm. So is it the resolved path that is opened, not the one that was given.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from lakeward.control.db import check_url
from lakeward.errors import NotAllowed, SettingsError, SourceError
from lakeward.sources.references import resolved

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Lookup = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host's name."""

_RULE = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<plain>[^\[\]:]+))(?::(?P<port>\d{1,5}))?")
_NAME = re.compile(r"(\*\.)?[^*/\s:]+|\*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_FILES = ("sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir")
"""Options of libpq that name a file which it reads."""

_HARMLESS = re.compile(
    "user|password|dbname|connect_timeout|client_encoding|options|application_name|fallback_application_name|"
    "keepalives|keepalives_idle|keepalives_interval|keepalives_count|tcp_user_timeout|sslmode|sslnegotiation|"
    "sslcompression|sslpassword|sslsni|ssl_min_protocol_version|ssl_max_protocol_version|channel_binding|"
    "require_auth|requirepeer|gssencmode|target_session_attrs|load_balance_hosts"
)
"""Options of libpq that name no other place. Others, as `service`, are refused: a file would say what is reached."""

_NO_FILE = "/dev/null/none"
"""A path that no file can have."""


def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the order in which they are to be tried.

    Raises:
        SourceError: the name is not known.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceError(f"host {host} is not known: {error}", safe="nothing was connected", host=host) from None
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True)
class HostRule:
    """Hosts that may be reached: one name, the names below one, or the addresses of a network.

    Args:
        name: in lower case; `*.suffix` for all below it, `*` for any.
        network: instead of a name.
        port: the only one; None: any.
    """

    name: str | None
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None
    port: int | None

    @classmethod
    def parse(cls, text: str) -> HostRule:
        """Return the rule that a text writes: `db.example.com`, `*.example.com:5432`, `10.0.0.0/8`, `[::1]:5432`.

        Raises:
            SettingsError: it is none.
        """
        found = _RULE.fullmatch(text)
        # What has several colons and no brackets is an address of IPv6, which no port can follow.
        host = (found["bracketed"] or found["plain"]) if found else text
        port = int(found["port"]) if found and found["port"] else None
        try:
            return cls(None, ipaddress.ip_network(host), port)
        except ValueError as error:
            if not _NAME.fullmatch(host):
                raise SettingsError(
                    f"sources.allowed_hosts has {text!r}, which is no name, *.suffix or network: {error}",
                    next_step="write db.example.com, *.example.com, 10.0.0.0/8 or [::1], each with :port if only that",
                    setting="sources.allowed_hosts",
                ) from None
        return cls(host.lower().rstrip("."), None, port)

    def names(self, host: str, port: int) -> bool:
        """Say whether it lets a host be reached by its name, wherever that leads."""
        if self.name is None or self.port not in (None, port):
            return False
        return self.name in ("*", host) or (self.name.startswith("*.") and host.endswith(self.name[1:]))

    def holds(self, address: Address, port: int) -> bool:
        """Say whether it lets an address be reached."""
        return self.network is not None and self.port in (None, port) and address in self.network


@dataclass(frozen=True)
class Allowed:
    """What the sources of a workspace may reach.

    Args:
        hosts: None: any.
        paths: folders and files, and beginnings of s3:// locations; None: any.
        references: as `env:PG*`, `file:/run/secrets/`; None: any.
        lookup: asks for the addresses of a name.
    """

    hosts: tuple[HostRule, ...] | None = None
    paths: tuple[str, ...] | None = None
    references: tuple[str, ...] | None = None
    lookup: Lookup = field(default=addresses_of, compare=False)

    @classmethod
    def declare(
        cls,
        hosts: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> Allowed:
        """Return what the settings allow.

        Raises:
            SettingsError: an entry can't be meant.
        """
        for path in paths or ():
            if not path.startswith(("/", "s3://")):
                raise _wrong("paths", path, "is neither a full path nor an s3:// location")
        for reference in references or ():
            if not reference.startswith(("env:", "file:/")):
                raise _wrong("references", reference, "is neither env:NAME nor file:/path")
        rules = tuple(map(HostRule.parse, hosts)) if hosts is not None else None
        return cls(
            rules,
            tuple(paths) if paths is not None else None,
            tuple(references) if references is not None else None,
        )

    def strict(self) -> Allowed:
        """Return what whoever may not run code may reach: where a list is not set, nothing."""
        return replace(self, hosts=self.hosts or (), paths=self.paths or (), references=self.references or ())

    def resolved(self, text: str) -> str:
        """Return what a reference stands for; a text that is none stands for itself.

        Raises:
            NotAllowed: it may not be referred to.
            SettingsError: the variable is not set, or the file can't be read.
        """
        kind, _, place = text.partition(":")
        if self.references is None or kind not in ("env", "file"):
            return resolved(text)
        rules = [rule.removeprefix(f"{kind}:") for rule in self.references if rule.startswith(f"{kind}:")]
        if kind == "env":
            fits = any(fnmatchcase(place, rule) for rule in rules)
        else:
            real = _real(place)
            fits = real is not None and any(_within(real, rule) for rule in rules)
            text = f"file:{real}"
        if not fits:
            raise _not_allowed(f"the reference {kind}:{place}", "references")
        return resolved(text)

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses to connect to, instead of the name; none: any that the name leads to.

        Raises:
            NotAllowed: one of them may not be reached.
            SourceError: the name is not known.
        """
        if self.hosts is None:
            return ()
        name = host.lower().rstrip(".")
        by_name = any(rule.names(name, port) for rule in self.hosts)
        refused = _not_allowed(f"host {host}, port {port}", "hosts")
        if not by_name and not any(rule.network for rule in self.hosts):
            raise refused  # Not even its address is asked for: a name that is looked up can tell something.
        found = self.lookup(host, port)
        if not by_name and not all(any(rule.holds(_plain(each), port) for rule in self.hosts) for each in found):
            raise refused
        return found

    def database_url(self, url: str) -> str:
        """Return the URL by which a PostgreSQL server is reached: with the addresses that were checked.

        Raises:
            NotAllowed: a host, a socket or a file that it names may not be reached.
            SettingsError: it is no URL of PostgreSQL.
            SourceError: a host's name is not known.
        """
        check_url(url)
        if self.hosts is None and self.paths is None and self.references is None:
            return url
        try:
            # As libpq itself reads it: what was checked must be what is connected to.
            options = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
        except psycopg.Error:
            raise SettingsError("the database URL is not one of Postgres", setting="database_url") from None
        hosts, ports = options.pop("host", "").split(","), options.pop("port", "").split(",")
        for name in options:
            if name in _FILES and options[name] != "system":
                options[name] = str(self.path(options[name]))
            elif name not in _FILES and not _HARMLESS.fullmatch(name):
                raise _not_allowed(f"the option {name} of a URL", "hosts")
        if self.references is not None:
            # Else libpq would look for a password that nobody referred to.
            options["passfile"] = _NO_FILE
        return _url(options, self._places(hosts, ports))

    def _places(self, hosts: Sequence[str], ports: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return host, address and port of each place that a URL leads to."""
        if len(ports) not in (1, len(hosts)) or not all(port.isdecimal() or not port for port in ports):
            raise SettingsError("the database URL has not one port for each host", setting="database_url")
        places: list[tuple[str, str, str]] = []
        for host, port in zip(hosts, ports if len(ports) == len(hosts) else [*ports] * len(hosts), strict=True):
            port = port or "5432"
            if not host or host.startswith("@"):
                raise _not_allowed("a server whose host is not named" if not host else f"socket {host}", "hosts")
            if host.startswith("/"):
                places.append((str(self.path(host)), "", port))
            else:
                places += [(host, address, port) for address in self.addresses(host, int(port)) or ("",)]
        return places

    def path(self, path: str | Path) -> Path:
        """Return the path to open, with all links resolved.

        Raises:
            NotAllowed: it lies in no folder that may be read.
        """
        if self.paths is None:
            return Path(path)
        real = _real(path)
        if real is None or not any(_within(real, rule) for rule in self.paths if rule.startswith("/")):
            raise _not_allowed(f"{path}", "paths")
        return real

    def location(self, text: str) -> str:
        """Return the location to open: a path as `path` does, or an s3:// location as it is.

        Raises:
            NotAllowed: it may not be read.
        """
        scheme = _SCHEME.match(text)
        if scheme is None:
            return text if self.paths is None else str(self.path(text))
        if self.paths is None and (scheme[1] in _S3 or self.hosts is None):
            return text
        plain = f"s3://{text[scheme.end() :]}"
        steps = plain.split("/")
        # The folder itself is allowed, too, with or without the slash at its end: it is what is listed.
        roots = [rule.rstrip("/") for rule in self.paths or ()]
        fits = any(plain == root or plain.startswith(f"{root}/") for root in roots)
        if scheme[1] not in _S3 or ".." in steps or not fits:
            raise _not_allowed(text, "paths")
        return text


_S3 = ("s3", "s3a", "s3n")


def _url(options: dict[str, str], places: Sequence[tuple[str, str, str]]) -> str:
    user, password, database = (options.pop(name, None) for name in ("user", "password", "dbname"))
    who = "" if user is None else quote(user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
    if user is None and password is not None:
        options["password"] = password
    if database is not None and quote(database, safe="") != database:
        options["dbname"], database = database, None
    hosts, addresses, ports = (",".join(part) for part in zip(*places, strict=True))
    options |= {"host": hosts, "port": ports} | ({"hostaddr": addresses} if addresses.strip(",") else {})
    query = urlencode(options, quote_via=quote, safe="")
    return f"postgresql://{who + '@' if who else ''}/{database or ''}?{query}"


def _plain(address: str) -> Address:
    """Return an address; one of IPv4 that is written as one of IPv6 is one of IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _real(path: str | Path) -> Path | None:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return None


def _within(real: Path, rule: str) -> bool:
    root = Path(os.path.realpath(rule))
    return root == real or root in real.parents


def _not_allowed(what: str, setting: str) -> NotAllowed:
    return NotAllowed(
        f"{what} is not among what sources of this workspace may reach",
        safe="nothing was opened",
        next_step=f"whoever runs the workspace can allow it by the setting sources.allowed_{setting}",
        setting=f"sources.allowed_{setting}",
    )


def _wrong(setting: str, entry: str, why: str) -> SettingsError:
    return SettingsError(f"sources.allowed_{setting} has {entry!r}, which {why}", setting=f"sources.allowed_{setting}")
