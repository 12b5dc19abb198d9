"""Hospitals as processes on loopback addresses: TLS, a site that dies, what the server saw."""

import datetime
import io
import ipaddress
import os
import pickle
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pytest

from crossfade import TaskPrior, load_mental_math

pytest.importorskip("flwr")

from crossfade.federated import Agreement, FederationError, join, serve, write_scale
from crossfade.federated._secure import RESIDUES
from crossfade.federated._sums import local_prior, packed, rounding

SITES = ["A", "B", "C", "D", "E"]
COMMAND = "import sys; from crossfade.cli import main; main(sys.argv[1:])"
# The server's commands, with a record of every message that reached it.
RECORDED = """
import pickle, sys
from flwr.superlink.grid import HttpGrid
pull, seen = HttpGrid.pull_messages, []
def recorded(self, ids):
    replies = list(pull(self, ids))
    for reply in replies:
        records = {} if reply.has_error() else {
            name: dict(record) for kind in ("config_records", "metric_records", "array_records")
            for name, record in getattr(reply.content, kind).items()
        }
        seen.append((reply.metadata.src_node_id, records))
    pickle.dump(seen, open("seen.pickle", "wb"))
    return replies
HttpGrid.pull_messages = recorded
"""
# A site whose machine goes down when it is asked for its masked sums.
DIES = """
import os
from types import SimpleNamespace
from crossfade.federated import _apps
protocol = _apps.client_protocol()
def dies(message, context, call_next):
    if message.content.config_records["secaggplus_configs"]["stage"].startswith("collect"):
        os._exit(7)
    return protocol.secaggplus_mod(message, context, call_next)
_apps.client_protocol = lambda: SimpleNamespace(secaggplus_mod=dies)
"""
# Loaded by every process, Flower's too: notes each address that it speaks to or listens on.
AUDIT = """
import os, sys
def note(event, args):
    if event in ("socket.connect", "socket.bind", "socket.sendto") and isinstance(args[1], tuple):
        with open(os.environ["ADDRESSES"], "a") as file:
            file.write(f"{args[1][0]}\\n")
    elif event == "socket.getaddrinfo":
        with open(os.environ["ADDRESSES"], "a") as file:
            file.write(f"{args[0]}\\n")
sys.addaudithook(note)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def make_certificates(folder, name):
    """An authority, and a certificate for 127.0.0.1 that it signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.UTC)

    def certificate(called, key, issuer, signer, extensions):
        named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, called)])
        builder = x509.CertificateBuilder().subject_name(named)
        builder = builder.issuer_name(issuer.subject if issuer else named)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(signer, hashes.SHA256())

    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    basics = [(x509.BasicConstraints(True, None), True), (usage, True)]
    identity = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = certificate(name, authority_key, None, authority_key, [*basics, (identity, False)])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    server = certificate(
        "server", key, authority, authority_key, [(here, False), (signed_by, False)]
    )
    pem = serialization.Encoding.PEM
    files = [folder / f"{name}-{part}.pem" for part in ("authority", "server", "key")]
    files[0].write_bytes(authority.public_bytes(pem))
    files[1].write_bytes(server.public_bytes(pem))
    plain, pkcs8 = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    files[2].write_bytes(key.private_bytes(pem, pkcs8, plain))
    return files


@contextmanager
def started(folder, code, *words):
    """A process of this interpreter, ended with the context whatever happens."""
    (folder / "audit").mkdir(exist_ok=True)
    (folder / "audit" / "sitecustomize.py").write_text(AUDIT)
    paths = [str(folder / "audit"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=folder,
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "ADDRESSES": str(folder / "addresses"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def test_five_hospitals_one_of_which_dies(tmp_path):
    tasks = load_mental_math()
    parts = dict(
        zip(SITES, (tasks[:8], tasks[8:15], tasks[15:22], tasks[22:29], tasks[29:]), strict=True)
    )
    for name, part in parts.items():
        part.write(tmp_path / f"{name}.csv")
    # From tasks that may be shown, to all sites.
    scale = TaskPrior.from_tasks(tasks[:4]).feature_scale
    write_scale(tmp_path / "scale.csv", tasks.feature_names, scale)
    authority, certificate, key = make_certificates(tmp_path, "ours")
    address = f"127.0.0.1:{free_port()}"
    serving = ["federate", "serve", "--sites", 5, "--scale", "scale.csv", "--classes", 0, 1]
    serving += ["--address", address, "--certificate", certificate, "--key", key]
    serving += ["--authority", authority, "--timeout", 10, "-o", "prior.npz"]

    def joining(name):
        words = ["federate", "join", f"{name}.csv", "--scale", "scale.csv", "--server", address]
        return [*words, "--site", name, "--authority", authority, "-o", f"prior-{name}.npz"]

    with ExitStack() as stack:

        def start(code, words):
            return stack.enter_context(started(tmp_path, code, *words))

        server = start(RECORDED + COMMAND, serving)
        sites = {
            name: start(DIES + COMMAND if name == "D" else COMMAND, joining(name)) for name in SITES
        }
        out, err = server.communicate(timeout=300)
        assert server.returncode == 0, err
        ends = {name: site.communicate(timeout=60) for name, site in sites.items()}
        codes = {name: site.returncode for name, site in sites.items()}
    assert codes == {"A": 0, "B": 0, "C": 0, "D": 7, "E": 0}, ends
    assert "dropped out, and not in the prior: D" in err
    assert "TaskPrior(n_tasks=29, n_features=9" in out

    # The prior is the pooled one of those who stayed, to the protocol's rounding.
    prior = TaskPrior.load(tmp_path / "prior.npz")
    stayed = [task for name in "ABCE" for task in parts[name]]
    pooled = TaskPrior.from_tasks(stayed, feature_scale=scale)
    assert prior.n_tasks == pooled.n_tasks == 29
    assert np.abs(prior.direction_sum - pooled.direction_sum).max() <= rounding(4, 64)
    assert np.abs(prior.outer_sum - pooled.outer_sum).max() <= rounding(4, 64)
    np.testing.assert_array_equal(prior.feature_scale, scale)
    for name in "ABCE":
        theirs = TaskPrior.load(tmp_path / f"prior-{name}.npz")
        np.testing.assert_array_equal(theirs.outer_sum, prior.outer_sum)
    assert not (tmp_path / "prior-D.npz").exists()

    # What the server saw holds nobody's direction.
    agreement = Agreement(scale, (0, 1), tasks.feature_names)
    truth = [packed(local_prior(part, agreement), 64) for part in parts.values()]
    seen = pickle.loads((tmp_path / "seen.pickle").read_bytes())
    masked = []
    for _, records in seen:
        for record in records.values():
            masked += [*record.get("masked_params", [])[1:]]
            assert set(record) <= {
                *("site", "pk1", "pk2", "dsts", "ctxts", "masked_params", "nids", "shares"),
                *("num_examples", "code", "message"),
            }
            assert record.get("num_examples", 1) == 1
    vectors = [np.load(io.BytesIO(content)) for content in masked]
    assert len(vectors) == 4
    for vector in vectors:
        assert vector.shape == truth[0].shape
        assert vector.max() > RESIDUES // 2
        for plain in truth:
            assert abs(np.corrcoef(vector, plain)[0, 1]) < 4.5 / np.sqrt(plain.size)
    # One of Flower's libraries binds ::1 for a moment, to learn whether there is IPv6.
    assert set((tmp_path / "addresses").read_text().split()) <= {"127.0.0.1", "::1"}


def test_a_site_does_not_speak_with_a_server_that_it_cannot_trust(tmp_path):
    _, certificate, key = make_certificates(tmp_path, "ours")
    stranger, *_ = make_certificates(tmp_path, "theirs")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    def answer_once(server):
        with suppress(ssl.SSLError), server.accept()[0] as raw:
            tls.wrap_socket(raw, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer_once, server)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        agreement = Agreement(np.ones(3), (0, 1))
        with pytest.raises(FederationError, match="certificate verify failed"):
            join(np.eye(3), agreement, "A", address, root_certificates=stranger)


def test_three_sites_without_certificates_on_loopback():
    W = np.eye(3)
    agreement = Agreement(np.ones(3), (0, 1))
    other = Agreement([1.0, 2.0, 1.0], (0, 1))
    address = f"127.0.0.1:{free_port()}"
    with ThreadPoolExecutor(5) as pool:
        seen = []
        server = pool.submit(
            serve, agreement, 3, address=address, wait=120, timeout=60, on_message=seen.append
        )
        odd = pool.submit(join, W[:1], other, "odd", address, wait=120)
        with pytest.raises(FederationError, match="feature scale of feature 1: 2"):
            odd.result(120)
        sites = [
            pool.submit(join, W[[place]], agreement, f"site {place}", address, wait=120)
            for place in range(3)
        ]
        priors = [site.result(120) for site in [server, *sites]]
    stages = [
        message.content.config_records.get("secaggplus_configs", {})
        for message in seen
        if message.has_content()
    ]
    assert sum("masked_params" in told for told in stages) == 3
    for prior in priors:
        assert prior.n_tasks == 3
        np.testing.assert_allclose(prior.direction_sum, 1.0, rtol=0, atol=1e-9)
        np.testing.assert_allclose(prior.outer_sum, np.eye(3), rtol=0, atol=1e-9)


def test_the_superlink_ends_with_a_server_that_is_killed(tmp_path):
    port = free_port()
    code = (
        "from crossfade.federated._superlink import superlink\n"
        f"with superlink('127.0.0.1', {port}, None):\n"
        "    print('open', flush=True)\n"
        "    input()\n"
    )
    with started(tmp_path, code) as server:
        assert server.stdout.readline() == "open\n"
        socket.create_connection(("127.0.0.1", port), 5.0).close()
        server.kill()
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 5.0).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.2)
    pytest.fail("the SuperLink is still there")
