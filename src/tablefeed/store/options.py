"""Translates users' storage options into the arguments of fsspec's file systems. Pure; opens nothing.

For S3 the option names of object_store (delta-rs) are understood, in upper or lower case. Other options are passed on
unchanged. Hadoop's options are refused, and the error names ours.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

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
_S3_CLIENT = {"aws_region": "region_name", "aws_default_region": "region_name", "region": "region_name"}
_S3_WITHOUT_EFFECT = {
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
    StoreConfigError for an AWS option that is not known.
    """
    typed = {name: _typed(name, value, url=url) for name, value in options.items()}
    return _for_s3(typed, url=url) if scheme == "s3" else typed


def secrets(options: Mapping[str, object]) -> tuple[str, ...]:
    """Gives the values that no text may show, longest first."""
    named = {value for name, value in options.items() if any(word in name.lower() for word in _SECRET_WORDS)}
    found = {value for value in named if isinstance(value, str) and value}
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _for_s3(options: Mapping[str, object], *, url: str) -> dict[str, object]:
    arguments: dict[str, object] = {}
    client: dict[str, object] = {}
    for name, value in options.items():
        lowered = name.lower()
        if lowered in _S3:
            arguments[_S3[lowered]] = value
        elif lowered in _S3_CLIENT:
            client[_S3_CLIENT[lowered]] = value
        elif lowered.startswith("aws_") and lowered not in _S3_WITHOUT_EFFECT:
            raise _unknown(name, url=url)
        elif lowered not in _S3_WITHOUT_EFFECT:
            arguments[name] = value
    if client:
        given = arguments.get("client_kwargs")
        arguments["client_kwargs"] = {**client, **(given if isinstance(given, dict) else {})}
    return arguments


def _unknown(name: str, *, url: str) -> StoreConfigError:
    near = difflib.get_close_matches(name.lower(), [*_S3, *_S3_CLIENT], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return StoreConfigError(f"The storage option {name!r} for {url} is not known.{hint}", url=url)


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
