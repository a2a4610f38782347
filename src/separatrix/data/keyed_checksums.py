"""Checksums with a key, HMAC-SHA256: without the key, a short content cannot be guessed by trying out contents."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import Any

KEY_BYTES = 32


def new_key() -> bytes:
    """Return a random key for the checksums of one receipt."""
    return secrets.token_bytes(KEY_BYTES)


def keyed(key: bytes, content: Any) -> str:
    """Return the checksum of a text, or of JSON values, with a key."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
