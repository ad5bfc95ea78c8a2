"""Keeps secrets out of everything that is printed: the last of several doors, behind errors that don't carry them."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote

MASK = "***"
_USERINFO = re.compile(r"(?<=://)[^\s/@:]*:(?P<password>.*)@(?=[^@]*$)")
_IN_TEXT = re.compile(r"(?<=://)[^\s/@]*:[^\s@]*(?=@)")
"""A user and password in a URL, wherever a text has one."""
CALLED: dict[str, str] = {}
"""What paths of this process are called for whoever reads what it prints: on a server they are its own."""

_SHORTEST = 3
"""A shorter secret is masked where it stands in a URL only: masking every `a` would hide the message."""


class Redactor:
    """Replaces known secrets in text, whole, decoded or encoded.

    Example:
        >>> redactor = Redactor()
        >>> redactor.add_url("postgresql://me:s%40crets@host/db")
        >>> redactor("refused: s@crets, s%40crets")
        'refused: ***, ***'
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._called = dict(CALLED)

    @classmethod
    def of_environment(cls) -> Redactor:
        """Return one that knows the secrets of this process's environment."""
        redactor = cls()
        for name, value in os.environ.items():
            if name == "LAKEWARD_DATABASE_URL":
                redactor.add_url(value)
            elif name.startswith("LAKEWARD_CATALOG__"):
                redactor.add_url(value)
                # The name of a key is none: masked, whatever else is called so could not be read any more.
                if re.search(r"secret|password|token|credential|key(?!_ID)", name, re.IGNORECASE):
                    redactor.add(value)
        return redactor

    def add_url(self, url: str) -> None:
        """Know the password of a URL, also where it holds characters that should have been encoded."""
        found = _USERINFO.search(url.partition("?")[0])
        # One that stands elsewhere in the URL as well, as `postgres` often does, is masked in URLs only.
        if found is not None and found["password"] not in url.replace(f":{found['password']}@", "@", 1):
            self.add(found["password"])
        for parameter in re.findall(r"[?&](?:password|sslpassword)=([^&]*)", url):
            self.add(parameter)

    def add(self, secret: str) -> None:
        """Know a secret in every form in which a library may print it."""
        for text in (secret, unquote(secret)):
            for form in (text, quote(text), quote(text, safe="")):
                if len(form) >= _SHORTEST:
                    self._secrets.update((form, repr(form)[1:-1]))

    def __call__(self, text: str) -> str:
        """Return the text with every known secret masked."""
        text = _IN_TEXT.sub(MASK, text)
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        for path, name in self._called.items():
            text = text.replace(path, name)
        return text
