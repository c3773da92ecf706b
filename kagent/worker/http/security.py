"""Who may see the page and the API, what a browser may do with them, and how they are encrypted."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from kagent.errors import SettingsError
from kagent.settings import HttpSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Asked by orchestrators, which have no login; they name no group."""
# Names in Kafka are anybody's text: without inline and foreign scripts, markup that slipped through cannot run.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def allowed(settings: HttpSettings, path: str, headers: Mapping[str, str]) -> bool:
    """Whether a request may be answered. The page's own files hold no data and are open: they ask for the token."""
    if settings.login == "none" or path in OPEN_PATHS or path == "/ui" or path.startswith("/ui/"):
        return True
    if settings.login == "proxy":
        return bool(headers.get(settings.proxy_header, "").strip())
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    token = settings.secret_token() or ""
    return (
        bool(token)
        and scheme.lower() == "bearer"
        # In constant time: one that stops at the first difference reveals the token byte by byte.
        and hmac.compare_digest(given.strip().encode(), token.encode())
    )


def guard(settings: HttpSettings) -> Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]:
    """The middleware that lets in, or not, and sets the headers of every answer."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        wants_page = request.path == "/" and "text/html" in request.headers.get("Accept", "")
        if not wants_page and not allowed(settings, request.path, request.headers):
            answer: web.StreamResponse = refused(settings)
        else:
            try:
                answer = await handler(request)
            # aiohttp raises its own answers, such as 404: they pass this middleware as exceptions.
            except web.HTTPException as error:
                error.headers.update(HEADERS)
                raise
        # A prepared answer's headers are sent already.
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    return checked


def refused(settings: HttpSettings) -> web.Response:
    """401, and how to get in."""
    how = (
        "send the header Authorization: Bearer TOKEN"
        if settings.login == "token"
        else f"ask through the proxy that logs people in (it sets {settings.proxy_header})"
    )
    # RFC 6750, section 3: https://www.rfc-editor.org/rfc/rfc6750#section-3
    headers = {"WWW-Authenticate": "Bearer"} if settings.login == "token" else {}
    return web.json_response({"error": f"A login is needed: {how}."}, status=401, headers=headers)


def server_tls(settings: HttpSettings) -> ssl.SSLContext | None:
    """TLS for the worker's port, None without a certificate. Raises SettingsError if a file cannot be used."""
    if settings.cert_file is None:
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings.cert_file, settings.key_file)
        return context
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"worker.http: the certificate {settings.cert_file} or its key cannot be used ({error})."
        ) from error
