"""slurm: apps as jobs of a Slurm cluster, by the site's own commands.

Nothing but ``sbatch``, ``squeue``, ``sacct``, ``scontrol``, ``scancel``, ``sinfo`` and ``srun`` on the PATH is used. An
app is one allocation, in which ``srun`` starts the replicas of each role. Jobs that TorchX launched, and those of a
user's own scripts, are listed, described, read and cancelled as well.
"""
