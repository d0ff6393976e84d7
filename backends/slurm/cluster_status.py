"""What of the cluster is free, by partition and node, and the limits of this user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.timeouts import AwaitedCall
from ...logs.text.sanitize import plain
from ...specs.errors import SchedulerError
from ..types import ClusterNode, ClusterStatus, pool_of
from .cluster import Cluster
from .limits import limit_sentences
from .values import expand_nodes

# Nodes are shown without the limits if accounting takes longer (s).
_LIMITS_WAIT_S = 4.0
_MAX_USERS = 20
_OPEN = "UP"
# What a partition demands of a job, by the fields of `scontrol show partition`.
_DEMANDS = {
    "MaxNodes": "max nodes {}",
    "AllowAccounts": "accounts {}",
    "DenyAccounts": "not accounts {}",
    "AllowQos": "QOS {}",
    "DenyQos": "not QOS {}",
    "AllowGroups": "groups {}",
    "QoS": "limits of QOS {}",
}
_ANY = ("", "ALL", "UNLIMITED", "N/A")


def cluster_status(cluster: Cluster, user: str, interval: float) -> ClusterStatus:
    """Return the partitions and nodes of a cluster with what is free, and the limits of a user.

    Raises:
        SchedulerError: Slurm does not list partitions or nodes.
    """
    call = AwaitedCall(lambda: _limits(cluster, user), "ask-limits")
    nodes, partitions, restrictions = cluster.all_nodes(), cluster.partitions(), cluster.restrictions()
    notes: list[str] = []
    try:
        active = cluster.active_jobs()
    except SchedulerError as error:
        active = []
        notes.append(f"jobs of other users are not known: {error}")
    mine: dict[str, set[str]] = {}
    limits: Sequence[str] = ()
    try:
        if call.wait(_LIMITS_WAIT_S):
            mine, limits = call.result()
        else:
            notes.append("limits are not known yet: accounting has not answered")
    except SchedulerError as error:
        notes.append(f"limits are not known: {error}")
    waiting = Counter(name for job in active if job["state"] == "PENDING" for name in job["partition"].split(","))
    pools = []
    for partition in partitions:
        name, fields = partition.name, restrictions.get(partition.name, {})
        note, is_open = _restriction(fields, mine)
        pool = pool_of(
            name,
            [node for node in nodes if name in node.pools],
            cfg={"partition": name},
            limit=partition.max_time,
            waiting=waiting[name],
            note=note or ("" if partition.is_up else "closed"),
            is_open=is_open and partition.is_up,
        )
        pools.append(pool)
    nodes = _with_users(nodes, active)
    return ClusterStatus(pools, nodes, limits, notes or [*_hidden(nodes, user)], interval)


def _limits(cluster: Cluster, user: str) -> tuple[dict[str, set[str]], Sequence[str]]:
    """Return the accounts, with those above them, and the QOS of a user, and the sentences of the limits.

    Of an account that a partition allows, the accounts below it are allowed too (scontrol(1): AllowAccounts).
    """
    accounts = cluster.accounts(user)
    names = {name for account in accounts for name, _ in cluster.associations(account, user)}
    qos = {name for allowed in accounts.values() for name in allowed}
    return {"Accounts": names, "Qos": qos}, [*limit_sentences(cluster, user, accounts)]


def _restriction(fields: Mapping[str, str], mine: Mapping[str, set[str]]) -> tuple[str, bool]:
    """Return what a partition demands of a job, and whether it starts jobs of this user, as far as that is known."""
    values = {key: fields.get(key, "") for key in _DEMANDS}
    demands = [_DEMANDS[key].format(plain(value)) for key, value in values.items() if value not in _ANY]
    is_refused = any(
        names and not _is_allowed(names, values[f"Allow{kind}"], values[f"Deny{kind}"]) for kind, names in mine.items()
    )
    state = fields.get("State", _OPEN)
    marks = [f"closed ({plain(state.lower())})"] if state != _OPEN else ["not yours"] if is_refused else []
    return ", ".join([*marks, *demands]), not marks


def _is_allowed(mine: set[str], allowed: str, denied: str) -> bool:
    """Return whether one of several names may be used: a list of allowed ones takes precedence."""
    return bool(mine - {*denied.split(",")} if allowed in _ANY else mine & {*allowed.split(",")})


def _with_users(nodes: Iterable[ClusterNode], active: Iterable[Mapping[str, str]]) -> list[ClusterNode]:
    """Return the nodes with the users of the jobs that have them."""
    users: dict[str, dict[str, None]] = {}
    for job in active:
        if job["state"] != "PENDING":
            for name in expand_nodes(job["nodes"]):
                users.setdefault(name, {})[job["user"]] = None
    return [replace(node, users=(*users.get(node.name, ()),)[:_MAX_USERS]) for node in nodes]


def _hidden(nodes: Sequence[ClusterNode], user: str) -> Iterator[str]:
    """Yield what Slurm hides from a user (slurm.conf(5): PrivateData)."""
    if not nodes:
        yield "Slurm shows you no nodes (PrivateData in slurm.conf)"
    used = [node for node in nodes if node.state.startswith(("allocated", "mixed"))]
    if {name for node in used for name in node.users} <= {user} and not all(node.users for node in used):
        yield "Slurm shows you no jobs of others (PrivateData in slurm.conf): users and waiting jobs are incomplete"
