"""How a page is answered: as a whole, or, where the browser has it already, the part of it that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import lakeward
from lakeward.access.guard import may, principal
from lakeward.access.principal import NOBODY
from lakeward.server.logins import logins_of
from lakeward.server.web import words
from lakeward.server.web.messages import COOKIE, Said, said_before
from lakeward.server.web.navigation import Place, shown
from lakeward.server.web.static_files import StaticFiles

TEMPLATES = Path(__file__).parent / "templates"


class Pages:
    """Makes the HTML of pages.

    Args:
        places: of all pages, for the navigation.
        files: what pages load.
    """

    def __init__(self, places: Sequence[Place], files: StaticFiles) -> None:
        self._places = places
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update({each.__name__: each for each in words.FILTERS})
        self._environment.globals.update(
            file=files.address, has_file=files.has, address=words.address, product=lakeward.__version__
        )
        # A block that is made alone has not what stands above it in its template.
        self._environment.globals["ui"] = self._environment.get_template("parts.html").module

    def answer(
        self, request: Request, template: str, block: str | None, status: HTTPStatus, values: Mapping[str, object]
    ) -> HTMLResponse:
        """Return a page, or one block of it."""
        made = self._environment.get_template(template)
        said = said_before(request) if block is None else None
        given = {
            "path": request.url.path,
            "navigation": shown(self._places),
            "who": principal().name if principal() is not NOBODY else "",
            "logins": logins_of(request) is not None,
            "may": may,
            # What stands around the part, and has to change with it, is sent along with it.
            "partial": block is not None,
            "said": [said] if said else [],
            **values,
        }
        context = made.new_context(given)
        html = "".join(made.root_render_func(context) if block is None else made.blocks[block](context))
        # A page tells of rows, which are nobody's to keep; and one address answers with a whole page or a part.
        answer = HTMLResponse(html, status, {"Cache-Control": "no-store", "Vary": "HX-Request, HX-Target"})
        if said is not None:
            answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def page(
    request: Request,
    template: str,
    *,
    part: str | None = None,
    status: HTTPStatus = HTTPStatus.OK,
    **values: object,
) -> HTMLResponse:
    """Answer with a page.

    Args:
        request: what is answered.
        template: of `templates/`.
        part: the name of a block of the template, which is also the `id` of its element: if htmx asks for that element,
            this block is all that is made.
        status: of the answer.
        values: what the template is given.
    """
    pages: Pages = request.app.state.pages
    asked = part is not None and request.headers.get("hx-target") == part
    return pages.answer(request, template, part if asked else None, status, values)


def failed(request: Request, said: Said, status: HTTPStatus) -> HTMLResponse:
    """Answer with a page that says what went wrong. To htmx that alone, which goes where messages stand."""
    pages: Pages = request.app.state.pages
    if "hx-request" not in request.headers:
        return pages.answer(request, "failed.html", None, status, {"problem": said, "status": status})
    answer = pages.answer(request, "failed.html", "message", status, {"problem": said, "status": status})
    answer.headers.update({"HX-Retarget": "#said", "HX-Reswap": "innerHTML"})
    return answer
