"""One job with what can go wrong between two programs: roles, replicas, retries, mounts, ports, macros, environment.

As a program: launches it, or utils.sh, by TorchX, and prints the handle. Arguments: the scheduler, the run options as
JSON, a folder for the job; then those of utils.sh.
"""

import json
import sys

READER = "trap 'exit 0' TERM; echo $GREETING from $0; touch /data/reader-$0; while :; do sleep 0.2; done"
# Fails the first time, and runs on the second.
TRAINER = "trap 'exit 0' TERM; [ -e /data/tried ] || { touch /data/tried; exit 7; }; echo again; " + (
    "while :; do sleep 0.2; done"
)


def make_job(specs, folder):
    """Return the AppDef, made with either package's specs.

    Args:
        specs: ``torchx.specs`` or ours.
        folder: A folder of this machine, mounted as /data.
    """

    def role(name, script, *args, **more):
        return specs.Role(
            name=name,
            image="busybox:local",
            entrypoint="sh",
            args=["-c", script, *args],
            resource=specs.Resource(cpu=1, gpu=0, memMB=64),
            max_retries=2,
            mounts=[specs.BindMount(src_path=folder, dst_path="/data")],
            **more,
        )

    env, ports = {"GREETING": "hello of ${app_id}"}, {"http": 8080}
    reader = role("reader", READER, "${replica_id}", num_replicas=2, env=env, port_map=ports)
    return specs.AppDef(name="Cross_launched", roles=[reader, role("trainer", TRAINER)], metadata={"team": "vision"})


def _launch(scheduler, cfg, folder, *arguments):
    import torchx.specs
    from torchx.runner import get_runner

    with get_runner() as runner:
        if arguments:
            handle = runner.run_component("utils.sh", list(arguments), scheduler, json.loads(cfg), workspace="")
        else:
            handle = runner.run(make_job(torchx.specs, folder), scheduler, json.loads(cfg))
    sys.stdout.write(handle)


if __name__ == "__main__":
    _launch(*sys.argv[1:])
