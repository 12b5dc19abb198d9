"""Checksums of models and ledgers, as model.schema.json describes them."""

import json
from hashlib import sha256


def digest_of(fields):
    """SHA-256 of fields as JSON with sorted keys, without spaces, in ASCII."""
    return sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
