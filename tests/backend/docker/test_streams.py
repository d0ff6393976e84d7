"""What a program in a container prints, from its first byte on."""

import select
import socket
import ssl
import subprocess
import threading

import docker
import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.docker_engine.streams import start_exec

HEAD = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"


class Answering:
    """Takes one connection, and answers with the head and the first output in one piece, later with the rest."""

    def __init__(self, first, rest, context=None):
        self._answers, self._context = (HEAD + first, rest), context
        self.read_on = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        taken, _ = self._listener.accept()
        self._listener.close()
        with self._context.wrap_socket(taken, server_side=True) if self._context else taken as near:
            asked = b""
            while b'"Detach"' not in asked:
                asked += near.recv(1 << 16)
            near.sendall(self._answers[0])
            self.read_on.wait(PATIENCE)
            near.sendall(self._answers[1])


@pytest.fixture(params=["tcp", "tls"])
def tls(request, tmp_path):
    if request.param == "tcp":
        return None
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    asked = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=here"]
    asked += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*asked, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize("first", [b"", b"early, ", b"x" * 16000], ids=["none", "little", "a record"])
def test_nothing_of_the_beginning_is_lost(tls, first, tmp_path, monkeypatch):
    # They win over what the SDK is told.
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    server = Answering(first, b"late", tls)
    encrypted = docker.tls.TLSConfig(ca_cert=str(tmp_path / "cert.pem"), verify=True) if tls else False
    scheme = "https" if tls else "tcp"
    api = docker.APIClient(f"{scheme}://127.0.0.1:{server.port}", version="1.41", tls=encrypted)
    connection, read = start_exec(api, "a1")
    assert connection.gettimeout() == api.timeout
    # What is there already is not waited for.
    while len(read) < len(first):
        assert select.select([connection], [], [], PATIENCE)[0]
        read += connection.recv(1 << 16)
    assert read == first
    server.read_on.set()
    while data := connection.recv(100):
        read += data
    assert read == first + b"late"
    api.close()
