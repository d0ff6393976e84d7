"""Components to try the dashboard with, that need nothing but Python."""

from torchx_tui.components.image import DEFAULT_IMAGE
from torchx_tui.components.programs import program_text
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role, macros


def train(
    steps: int = 20,
    num_replicas: int = 2,
    step_seconds: float = 0.2,
    fail_at_step: int = -1,
    fail_rank: int = 0,
    max_retries: int = 0,
    image: str = DEFAULT_IMAGE,
) -> AppDef:
    """Pretend to train, to see how a job looks.

    Each replica prints steps and losses, progress bars and warnings, and fails at the given step.

    Args:
        steps: number of training steps
        num_replicas: number of replicas
        step_seconds: seconds that a step takes
        fail_at_step: the step at which a replica fails, -1 for none
        fail_rank: the replica that fails
        max_retries: the number of scheduler retries allowed
        image: image to use; any with python3
    """
    return AppDef(
        name="demo-train",
        roles=[
            Role(
                name="trainer",
                image=image,
                entrypoint="python3",
                args=[
                    *("-c", program_text("demo.py")),
                    *("--rank", macros.replica_id),
                    *("--world_size", str(num_replicas)),
                    *("--steps", str(steps)),
                    *("--step_seconds", str(step_seconds)),
                    *("--fail_at_step", str(fail_at_step)),
                    *("--fail_rank", str(fail_rank)),
                ],
                num_replicas=num_replicas,
                max_retries=max_retries,
                resource=Resource(cpu=1, gpu=0, memMB=512),
            )
        ],
    )
