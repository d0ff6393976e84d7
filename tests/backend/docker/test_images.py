"""Images are pulled, with progress in words, from a real registry."""

import base64
import io
import json
import os
import tarfile
import threading

import pytest
from support.background import in_background
from support.docker_containers import output_of
from support.docker_registry import PROGRAM, free_port, local_registry
from support.scripted_engine import events, refused
from support.scripted_server import Stream
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.docker_engine.images import Layers, build, ensure_images, push, variables_of
from torchx_tui.backends.shared.progress import Progress, shown_progress
from torchx_tui.backends.shared.streaming_response import StreamingResponse
from torchx_tui.backends.workspace.docker_workspace import DockerWorkspaceMixin
from torchx_tui.specs.errors import LaunchCancelledError, SchedulerError
from torchx_tui.specs.roles import AppDef, Role


@pytest.fixture
def engine(docker_engine):
    made = Engine()
    yield made
    made.close()


@pytest.fixture
def registry(engine, tmp_path, require):
    """Give the address of a registry; it has the image ``busybox:pushed``."""
    require("docker-registry", PROGRAM is not None, "apt install docker-registry")
    with local_registry(tmp_path) as address:
        client = engine.new_client(None)
        client.api.import_image_from_data(layer(3_000_000), repository=f"{address}/busybox", tag="pushed")
        push(client, f"{address}/busybox", "pushed")
        remove(engine, f"{address}/busybox:pushed")
        client.close()
        yield address


def layer(size):
    """Return a layer that no engine has yet."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("data")
        entry.size = size
        tar.addfile(entry, io.BytesIO(os.urandom(size)))
    return packed.getvalue()


def remove(engine, image):
    engine.client().api.remove_image(image, force=True)


def ensured(engine, *images, pull=True):
    """Return the words of progress."""
    said = []
    with shown_progress(Progress(said.append)):
        ensure_images(engine, images, pull)
    return said


def test_an_image_is_pulled_with_progress(engine, registry):
    image = f"{registry}/busybox:pushed"
    said = ensured(engine, image, image)
    assert engine.client().api.inspect_image(image)
    assert said[0] == f"pulling {image}"
    assert said.count(f"pulling {image}") >= 2
    assert any(words.startswith(f"pulling {image}: 1 of 1 layers") for words in said)
    remove(engine, image)


def test_an_image_that_cannot_be_pulled_is_used_as_it_is_here(engine):
    said = ensured(engine, "busybox:local")
    assert said[-1].startswith("busybox:local is used as it is here: busybox:local cannot be pulled: ")


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("{registry}/busybox:nothing", "no such image or tag"),
        ("{registry}/nothing", "no such image or tag"),
        ("127.0.0.1:{closed}/busybox", "registry cannot be reached"),
        ("Not A Name", "Not A Name"),
        ("sha256:" + 64 * "0", "has no image"),
    ],
)
def test_why_an_image_cannot_be_had(engine, registry, image, words):
    with pytest.raises(SchedulerError, match=words):
        ensured(engine, image.format(registry=registry, closed=free_port()))


def test_progress_of_a_pull_counts_layers():
    said = []
    with shown_progress(Progress(said.append)):
        layers = Layers("pulling x")
        layers.add({"status": "Pulling from x", "id": "latest"})
        for layer in ("a", "b"):
            layers.add({"status": "Pulling fs layer", "id": layer})
        layers.add({"status": "Downloading", "id": "a", "progressDetail": {"current": 2_000_000, "total": 4_000_000}})
        layers.add({"status": "Pull complete", "id": "a"})
        layers.add({"status": "Downloading", "id": "a"})
    assert said[0] == said[1] == "pulling x"
    assert said[-3:] == ["pulling x: 0 of 2 layers", *["pulling x: 1 of 2 layers"] * 2]


def test_an_image_that_cannot_be_pushed(engine):
    client = engine.new_client(None)
    repository = f"127.0.0.1:{free_port()}/busybox"
    client.api.tag("busybox:local", repository, "there")
    with pytest.raises(SchedulerError, match="there cannot be pushed: its registry cannot be reached"):
        push(client, repository, "there")
    remove(engine, f"{repository}:there")
    with pytest.raises(SchedulerError, match="does not exist locally"):
        push(client, repository, "there")
    client.close()


def test_workspace_image_is_pushed(engine, registry, tmp_path):
    class Builder(DockerWorkspaceMixin):
        pass

    (tmp_path / "project").mkdir()
    (tmp_path / "project/file").write_text("content")
    built = Builder().build_workspace_image("busybox:local", str(tmp_path / "project"), {"pull": False})
    app = AppDef("a", [Role("r", built)])
    pushes = Builder().dryrun_push_images(app, {"image_repo": f"{registry}/team"})
    Builder().push_images(pushes)
    remove(engine, built)
    image = app.roles[0].image
    assert image == f"{registry}/team:{built.removeprefix('sha256:')}"
    ensured(engine, image)
    assert output_of(engine.client(), image, "cat", "file") == "content"
    remove(engine, image)


# Where an engine answers as it is told to

WHY = [
    ((200, events({"status": "Preparing", "id": "1"}, {"error": "manifest unknown"})),
     "there is no such image or tag there (manifest unknown)"),
    (refused(404, "pull access  denied\nfor x"),
     "you may not: log in with `docker login`, or correct the name (pull access denied for x)"),
    (refused(500, "dial tcp: i/o timeout"), "its registry cannot be reached (dial tcp: i/o timeout)"),
    (refused(500, "write: No space left on device"),
     "the engine's disk is full: `docker system prune` makes room (write: No space left on device)"),
    (refused(500, "odd"), "odd"),
]  # fmt: skip


@pytest.fixture
def client(scripted):
    made = scripted.engine().new_client(None)
    yield made
    made.close()


@pytest.mark.parametrize(("answer", "words"), WHY)
def test_an_image_that_is_refused_on_its_way(scripted, client, answer, words):
    scripted.answers["GET", "/images/busybox/json"] = refused(404, "No such image: busybox")
    scripted.answers["POST", "/images/create"] = answer
    with pytest.raises(SchedulerError) as raised:
        ensured(scripted.engine(), "busybox")
    assert str(raised.value) == f"busybox cannot be pulled: {words}. The engine has none of that name either"
    assert scripted.asked[-1].params == {"fromImage": "busybox", "tag": "latest"}
    scripted.answers["POST", "/images/team/x/push"] = answer
    with pytest.raises(SchedulerError) as raised:
        push(client, "team/x", "1")
    assert str(raised.value) == f"team/x:1 cannot be pushed: {words}"


def test_a_login_goes_along_with_a_pull_and_a_push(scripted, client, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    known = base64.b64encode(b"alice:secret").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"here.test": {"auth": known}}}))
    scripted.answers["POST", "/images/create"] = 200, events({"status": "Download complete"})
    logins = []
    for registry in ("here.test", "there.test"):
        image = f"{registry}/x"
        scripted.gives(f"/images/{image}:1/json", {"Id": "sha256:1"})
        scripted.answers["POST", f"/images/{image}/push"] = 200, events({"status": "Pushed", "id": "1"})
        ensured(scripted.engine(), f"{image}:1")
        push(client, image, "1")
        assert scripted.asked[-1].params == {"tag": "1"}
        sent = [asked.headers.get("X-Registry-Auth", "") for asked in scripted.requests("POST")][-2:]
        logins.append([json.loads(base64.urlsafe_b64decode(one) or b"null") for one in sent])
    (pulled, pushed), without = logins
    assert (pulled["username"], pulled["password"]) == ("alice", "secret")
    assert pushed == pulled
    assert without == [None, {}]


def test_short_name_of_podman_is_here(scripted):
    scripted.answers["POST", "/images/create"] = refused(404, "manifest unknown")
    scripted.answers["GET", "/images/busybox:local/json"] = refused(404, "No such image: busybox:local")
    scripted.gives("/images/localhost/busybox:local/json", {"Id": "sha256:1"})
    assert ensured(scripted.engine(), "busybox:local")[-1].startswith("busybox:local is used as it is here: ")


@pytest.mark.parametrize("begun", [True, False])
def test_cancelled_pull_ends_at_once(scripted, begun):
    said = []
    progress, is_asked, may_answer, content = Progress(said.append), threading.Event(), threading.Event(), Stream()
    content.put({"status": "Pulling fs layer", "id": "a"})

    def answer(asked):
        is_asked.set()
        if not begun:
            may_answer.wait(PATIENCE)
        return 200, content

    def launch():
        with shown_progress(progress):
            ensure_images(scripted.engine(), ["busybox"])

    scripted.answers["POST", "/images/create"] = answer
    scripted.gives("/images/busybox/json", {"Id": "sha256:1"})
    launching = in_background(launch)
    assert is_asked.wait(PATIENCE)
    if begun:
        wait_until(lambda: said[-1] == "pulling busybox: 0 of 1 layers", "the first layer")
    progress.cancel()
    assert isinstance(launching.exception(PATIENCE), LaunchCancelledError)
    if not begun:
        # Nor is what asks waited for at the end of the program.
        assert {one.daemon for one in threading.enumerate() if one.name == "docker-image"} == {True}
    may_answer.set()
    content.end()


def test_the_connection_of_a_pull_is_released_however_it_went(scripted, monkeypatch):
    closed = []
    close = StreamingResponse.close

    def noted(answer):
        closed.append(answer)
        close(answer)

    monkeypatch.setattr(StreamingResponse, "close", noted)
    scripted.answers["GET", "/images/busybox/json"] = refused(404, "No such image: busybox")
    scripted.answers["POST", "/images/create"] = 200, events({"status": "Download complete"})
    ensured(scripted.engine(), "busybox")
    assert len(closed) == 1
    scripted.answers["POST", "/images/create"] = 200, events({"error": "odd"}, {"status": "never read"})
    with pytest.raises(SchedulerError, match="odd"):
        ensured(scripted.engine(), "busybox")
    assert len(closed) == 2


def test_what_a_build_says(scripted, client):
    said = []

    def built(answer, *, quiet=False):
        said.clear()
        scripted.answers["POST", "/build"] = answer
        with shown_progress(Progress(said.append)):
            return build(client, iter([b"a", b"tar"]), {"q": "0"}, name="it", quiet=quiet)

    steps = [
        *({"stream": f"Step {number}\n"} for number in range(9)),
        {"stream": "---> 1a2b\n\n"},
        {"stream": "Removing intermediate container 1a2b\n"},
        {"status": "Pulling"},
    ]
    done = events(*steps, {"aux": {"ID": "sha256:7"}}, {"stream": "\n"})
    assert built((200, done)) == "sha256:7"
    assert said == ["building it", *(f"building it: Step {number}" for number in range(9)), "building it: Pulling"]
    asked = scripted.asked[-1]
    assert (asked.params, asked.body, asked.headers["Content-Type"]) == ({"q": "0"}, b"atar", "application/x-tar")
    assert built((200, done), quiet=True) == "sha256:7"
    assert set(said) == {"building it"}
    for answer, words in (
        ((200, events(*steps, {"error": "it broke\n"})),
         "it cannot be built:\n" + "\n".join(f"Step {number}" for number in range(2, 9)) + "\nPulling\nit broke"),
        ((200, events(*steps)), "it cannot be built: the engine did not say which image it made"),
        (refused(400, "no Dockerfile"), "it cannot be built: no Dockerfile"),
    ):  # fmt: skip
        with pytest.raises(SchedulerError) as raised:
            built(answer)
        assert str(raised.value) == words


def test_variables_of_an_image(scripted):
    engine = scripted.engine()
    assert variables_of(engine, "sha256:later") == frozenset()
    for image, config, variables in (
        ("sha256:later", {"Env": ["A=1", "B=2"]}, {"A=1", "B=2"}),
        ("sha256:bare", {"Env": None}, set()),
        ("sha256:none", None, set()),
    ):
        scripted.gives(f"/images/{image}/json", {"Config": config})
        assert variables_of(engine, image) == variables
    # What an id means never changes.
    scripted.answers.clear()
    assert variables_of(engine, "sha256:later") == {"A=1", "B=2"}
