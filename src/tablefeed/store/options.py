"""Translates users' storage options into the arguments of fsspec's file systems. Pure; opens nothing.

The option names of object_store (delta-rs) are understood, in upper or lower case. Other options are passed on
unchanged. Hadoop's options are refused, and the error names ours.
"""

from __future__ import annotations

import difflib
import json
import re
import traceback
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

from tablefeed.errors import StoreConfigError

_S3 = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
    "aws_endpoint": "endpoint_url",
    "aws_profile": "profile",
    "aws_skip_signature": "anon",
}
_GCS = {
    "google_service_account": "token",
    "google_service_account_path": "token",
    "google_service_account_key": "token",
    "google_application_credentials": "token",
    "google_base_url": "endpoint_url",
}
_AZURE = {
    "azure_storage_account_name": "account_name",
    "azure_storage_account_key": "account_key",
    "azure_storage_access_key": "account_key",
    "azure_storage_sas_token": "sas_token",
    "azure_storage_sas_key": "sas_token",
    "azure_storage_client_id": "client_id",
    "azure_storage_client_secret": "client_secret",
    "azure_storage_tenant_id": "tenant_id",
}
_CLOUDS = {"s3": ("aws_", _S3), "gs": ("google_", _GCS), "abfs": ("azure_", _AZURE)}
"""By scheme, how object_store's own names begin, and those that are understood."""

_S3_CLIENT = {"aws_region": "region_name", "aws_default_region": "region_name", "region": "region_name"}
_WITHOUT_EFFECT = {
    "aws_allow_http",  # the endpoint's scheme says it
    "allow_http",
    "aws_s3_allow_unsafe_rename",  # nothing is renamed
}
_HADOOP = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint": "aws_endpoint_url",
    "endpoint.region": "aws_region",
}
_SECRET_PART = re.compile(
    r"""(?:AccountKey=|SharedAccessSignature=|sig=|"[a-z_-]*(?:key|secret|token|password|authorization)"\s*:\s*")([^";&]+)""",
    re.IGNORECASE,
)
_SHORT = 8
"""Shorter secrets are no secrets, such as the "test" of a server on one's own machine, but may be parts of words."""

_SECRET_WORDS = ("key", "secret", "token", "password", "sas", "credential", "connection")


def refuse_hadoop(options: Mapping[str, object], *, url: str) -> None:
    """Raises StoreConfigError for the first Hadoop option, and names our option for it."""
    for name in options:
        lowered = name.lower().removeprefix("spark.hadoop.")
        if not lowered.startswith("fs."):
            continue
        ours = _HADOOP.get(lowered.partition("fs.s3a.")[2])
        remedy = f"Write {ours!r}" if ours else f"The options for S3 are {', '.join(sorted({*_S3, 'aws_region'}))}"
        raise StoreConfigError(
            f"The storage option {name!r} for {url} is Hadoop's, which is not used here. {remedy} instead.", url=url
        )


def for_fsspec(scheme: str, options: Mapping[str, object], *, url: str) -> dict[str, object]:
    """Gives the keyword arguments of fsspec's file system for `scheme`.

    The text true or false becomes a bool, and a JSON object a dict: fsspec expects these, but options are text. Raises
    StoreConfigError for an unknown option that begins like object_store's, and for a number where it takes a text.
    """
    typed = {name: _typed(name, value, url=url) for name, value in options.items()}
    return _for_cloud(scheme, typed, url=url) if scheme in _CLOUDS else typed


def server(scheme: str, options: Mapping[str, object], *, url: str) -> str | None:
    """Gives the server that `options` name, by its endpoint or its account at Azure; None where they name none."""
    arguments = for_fsspec(scheme, options, url=url) if scheme in _CLOUDS else {}
    client = arguments.get("client_kwargs")
    of_client = client.get("endpoint_url") if isinstance(client, dict) else None
    named = arguments.get("endpoint_url") or of_client or arguments.get("account_name")
    return str(named).rstrip("/").lower() if named else None


def secrets(options: Mapping[str, object]) -> tuple[str, ...]:
    """Gives the values that no text may show, longest first, with the secret parts of connection strings and JSON.

    Each is there as in a URL too.
    """
    texts = {name: value for name, value in options.items() if isinstance(value, str) and value}
    wholes = {value for name, value in texts.items() if any(word in name.lower() for word in _SECRET_WORDS)}
    parts = {part for value in texts.values() for part in _SECRET_PART.findall(value)}
    plain = {*wholes, *parts, *map(unquote, parts)}
    found = {*plain, *(quote(each, safe="") for each in plain)}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def masked(text: str, hidden: Iterable[str]) -> str:
    """Gives `text` without the `hidden` texts. A short one stays where it is a part of a longer word."""
    for secret in hidden:
        if len(secret) < _SHORT:
            text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", "***", text)
        else:
            text = text.replace(secret, "***")
    return text


def shown_cause(error: Exception, hidden: Iterable[str]) -> Exception | None:
    """Gives `error` as the cause of ours: None if its traceback, which ours shows too, has a `hidden` text."""
    shows = "".join(traceback.format_exception(error, limit=0))  # with the errors behind it, each once, and notes
    return error if masked(shows, hidden) == shows else None


def _for_cloud(scheme: str, options: Mapping[str, object], *, url: str) -> dict[str, object]:
    prefix, known = _CLOUDS[scheme]
    arguments: dict[str, object] = {}
    client: dict[str, object] = {}
    for name, value in options.items():
        lowered = name.lower()
        is_ours = lowered in known or (scheme == "s3" and lowered in _S3_CLIENT)
        if is_ours and isinstance(value, int | float | bytes) and not isinstance(value, bool):
            raise StoreConfigError(
                f"The storage option {name!r} for {url} is a {type(value).__name__}. Give a text.", url=url
            )
        if lowered in known:
            arguments[known[lowered]] = value
        elif is_ours:
            client[_S3_CLIENT[lowered]] = value
        elif lowered.startswith(prefix) and lowered not in _WITHOUT_EFFECT:
            near = difflib.get_close_matches(lowered, [*known, *(_S3_CLIENT if scheme == "s3" else ())], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise StoreConfigError(f"The storage option {name!r} for {url} is not known.{hint}", url=url)
        elif lowered not in _WITHOUT_EFFECT:
            arguments[name] = value
    if client:
        given = arguments.get("client_kwargs")
        arguments["client_kwargs"] = {**client, **(given if isinstance(given, dict) else {})}
    return arguments


def _typed(name: str, value: object, *, url: str) -> object:
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        # The value itself is not shown: it may hold credentials.
        raise StoreConfigError(f"The storage option {name!r} for {url} is not valid JSON.", url=url) from error
