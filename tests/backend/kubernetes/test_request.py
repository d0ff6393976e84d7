"""The request: what is added to TorchX's job, and its text for people and kubectl."""

import pytest
import yaml
from backend.kubernetes.apps import request, role

from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.request import KubernetesJob, KubernetesOpts, make_request
from torchx_tui.backends.kubernetes.scheduler import native_text
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.workspace import Workspace


def test_the_text_is_the_job_and_shows_no_secrets():
    secret = "do not show"
    made = request(role(env={"HF_TOKEN": secret, "A": "b\nc", "API_KEY": ""}, num_replicas=2), namespace="team")
    text = str(made)
    assert secret not in text
    assert "# values shown as ******** are sent in full: HF_TOKEN\n" in text
    shown = yaml.safe_load(text)
    assert (shown["kind"], shown["metadata"]["namespace"]) == ("Job", "team")
    # Everything else is what is sent.
    sent = made.resource
    for one in (shown, sent):
        one["metadata"]["annotations"].pop(labels.APP_DEF, None)
    for task in sent["spec"]["tasks"]:
        for variable in task["template"]["spec"]["containers"][0]["env"]:
            if variable["name"] == "HF_TOKEN":
                assert variable["value"] == secret
                variable["value"] = MASK
    assert shown == sent


def test_the_app_def_is_left_out_of_the_text_and_said_to_be():
    made = request(role(env={"DB_PASSWORD": "hidden"}))
    assert "hidden" in made.resource["metadata"]["annotations"][labels.APP_DEF]
    text = str(made)
    assert labels.APP_DEF not in yaml.safe_load(text)["metadata"]["annotations"]
    assert f"# left out here: the annotation {labels.APP_DEF}" in text


def test_what_annotations_hold_of_a_whole_manifest_is_not_shown():
    job = request(role(env={"DB_PASSWORD": "hidden"})).resource
    job["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = '{"DB_PASSWORD": "hidden"}'
    text = native_text(job, [{"metadata": {"name": "pod", "annotations": {"a": "b"}}}])
    assert "hidden" not in text
    annotations = next(yaml.safe_load_all(text))["metadata"]["annotations"]
    assert annotations["kubectl.kubernetes.io/last-applied-configuration"] == "<25 bytes of JSON>"
    assert annotations[labels.SESSION] == "mine"


def test_text_without_secrets_says_nothing_of_them():
    assert MASK not in str(request(role()))


def test_only_annotations_of_the_job_are_added():
    job = request(role()).resource
    assert set(job["metadata"]) == {"name", "namespace", "annotations"}
    assert set(job["metadata"]["annotations"]) == {labels.APP_DEF, labels.USER, labels.SESSION}
    template = job["spec"]["tasks"][0]["template"]
    assert not any(
        name.startswith("torchx-tui/")
        for name in {**template["metadata"]["labels"], **template["metadata"]["annotations"]}
    )


def test_the_id_of_the_app():
    made = request(role(), namespace="team")
    assert made.app_id == f"team:{made.resource['metadata']['name']}"
    assert KubernetesJob({}, {"metadata": {"name": "x"}}).app_id == "default:x"


def test_the_run_options_have_their_effect():
    made = request(
        role(),
        queue="q",
        service_account="account",
        priority_class="high",
        reserved_millicpu=250,
        reserved_memmb=4,
        efa_device_count=2,
    )
    spec = made.resource["spec"]
    pod = spec["tasks"][0]["template"]["spec"]
    assert (spec["queue"], spec["priorityClassName"], pod["serviceAccountName"]) == ("q", "high", "account")
    resources = pod["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "750m", "memory": "60M"}
    assert resources["limits"] == {"cpu": "1000m", "memory": "64M", "vpc.amazonaws.com/efa": "2"}


def test_images_that_are_pushed():
    digest = "a" * 64
    app = AppDef("job", [role(image=f"repo/x:{digest}", workspace=Workspace({"/home/me": ""}))])
    pushes = {f"sha256:{digest}": ("repo/x", digest)}
    made = make_request(app, "mine", KubernetesOpts(queue="q"), VOLCANO, pushes)
    assert made.images_to_push == pushes
    assert f"# sha256:{'a' * 12} is pushed to repo/x:{digest} before\n" in str(made)
    # The workspace is in the image.
    assert '"workspace":null' in made.resource["metadata"]["annotations"][labels.APP_DEF]


def test_what_cannot_be_a_job_is_refused():
    with pytest.raises(AppDefError, match="The namespace is 'A'"):
        request(role(), namespace="A")
