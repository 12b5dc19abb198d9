"""X25519, Ed25519, HKDF and ChaCha20, all of `cryptography`: no primitive is our own."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def new_secrets() -> tuple[bytes, bytes]:
    """Secret keys for exchange (X25519) and signature (Ed25519)."""
    exchange, signing = X25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    return exchange.private_bytes_raw(), signing.private_bytes_raw()


def publics_of(exchange: bytes, signing: bytes) -> tuple[bytes, bytes]:
    """Public keys of two secret ones."""
    return (
        X25519PrivateKey.from_private_bytes(exchange).public_key().public_bytes_raw(),
        Ed25519PrivateKey.from_private_bytes(signing).public_key().public_bytes_raw(),
    )


def shared_stream(secret: bytes, public: bytes, agreement: bytes, pair: bytes, size: int) -> bytes:
    """Bytes that only two sites can compute, each from its secret and the other's public key.

    Another agreement or pair gives others. Refuses public keys that make the secret guessable.
    """
    point = X25519PublicKey.from_public_bytes(public)
    shared = X25519PrivateKey.from_private_bytes(secret).exchange(point)
    key = HKDF(SHA256(), 32, salt=agreement, info=b"crossfade pairwise mask 1" + pair)
    # A key serves one stream, so that the nonce may be zero.
    cipher = Cipher(ChaCha20(key.derive(shared), bytes(16)), mode=None)
    return cipher.encryptor().update(bytes(size))


def sign(secret: bytes, message: bytes) -> bytes:
    """Signature of 64 bytes; the same for the same message."""
    return Ed25519PrivateKey.from_private_bytes(secret).sign(message)


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the owner of a key signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
