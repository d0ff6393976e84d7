#!/usr/bin/env bash
# Start a private Slurm cluster of several nodes on this machine, with accounting, so that sacct works.
#
#   tests/services/slurm-up.sh            install what is missing (apt, as root), start it, wait for its nodes
#   eval "$(tests/services/slurm-up.sh)"  the same, and set SLURM_CONF: stdout has only `export` lines
#   eval "$(SLURM_RELEASE=24.11 tests/services/slurm-up.sh)"  a newer Slurm, beside the other; PATH is set, too
#
# A second call finds it running and returns at once; one after a crash starts what is missing. slurm-down.sh stops it.
# Settings: slurm-common.sh.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/services/slurm-common.sh
. "$HERE/slurm-common.sh"

install_missing() {
    # The bare server: mariadb-server would bring a cluster of its own and a new perl. mariadb-install-db calls the other.
    install_packages munged=munge mariadbd=mariadb-server-core my_print_defaults=mariadb-client-core
    if [ -n "$SUITE" ]; then
        "$HERE/slurm-packages.sh"
    else
        install_packages slurmctld=slurm-wlm slurmd=slurm-wlm sbatch=slurm-wlm slurmdbd=slurmdbd
    fi
}

write_settings() {
    local host
    host=$(hostname -s)
    [ -s "$ETC/munge.key" ] || (umask 077 && head -c 128 /dev/urandom >"$ETC/munge.key")
    cat >"$ETC/slurm.conf.new" <<CONF
ClusterName=$CLUSTER
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$PORT
SlurmUser=root
SlurmdUser=root
# cred_expire is also how long a requeued job waits before it starts again, by default 120 s
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$RUN/munge.sock,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPidFile=$RUN/slurmctld.pid
SlurmdPidFile=$RUN/slurmd-%n.pid
SlurmctldLogFile=$LOG/slurmctld.log
SlurmdLogFile=$LOG/slurmd-%n.log
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
# no cgroups, no affinity, no MPI, no mail, no limits raised
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
PropagateResourceLimits=NONE
# nodes claim more CPUs and memory than the machine has
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
# schedule often, kill soon, take nodes back, remember jobs that have ended for an hour
SchedulerParameters=bf_interval=1,sched_interval=2,batch_sched_delay=0
KillWait=2
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
MinJobAge=3600
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$DBD_PORT
# with munge, the socket for talking to slurmdbd
AccountingStoragePass=$RUN/munge.sock
AccountingStoreFlags=job_comment
NodeName=n[1-$NODES] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((NODE_PORT + 1))-$((NODE_PORT + NODES))] CPUs=$CPUS CoresPerSocket=$CPUS RealMemory=4000 State=UNKNOWN${GPUS:+ Gres=$GPUS}
PartitionName=main Nodes=n[1-$NODES] Default=YES MaxTime=INFINITE State=UP
$PLUGINS${SLURM_TEST_SETTINGS:-}
CONF
    # Nobody opens the devices.
    for gpu in ${GPUS//,/ }; do
        IFS=: read -r _ type count <<<"$gpu"
        for ((k = 0; k < count; k++)); do
            [ -e "$ETC/$type-$k" ] || mknod "$ETC/$type-$k" c 1 3
            echo "Name=gpu Type=$type File=$ETC/$type-$k"
        done
    done >"$ETC/gres.conf"
    # Read only by task/cgroup, which a test may ask for.
    printf '%s\n' CgroupPlugin=cgroup/v1 CgroupMountpoint=/sys/fs/cgroup ConstrainRAMSpace=yes ConstrainSwapSpace=yes \
        AllowedSwapSpace=0 >"$ETC/cgroup.conf"
    if runs slurmctld && ! cmp -s "$ETC/slurm.conf.new" "$ETC/slurm.conf"; then
        die "a cluster with other settings runs in $DIR: run slurm-down.sh first"
    fi
    mv "$ETC/slurm.conf.new" "$ETC/slurm.conf"
}

start() { # name, command...: in a session of its own, with no terminal, stdin or open pipe of ours
    local name=$1
    shift
    rm -f "$RUN/$name.pid"
    say "starting $name"
    setsid "$@" >>"$LOG/$name.out" 2>&1 </dev/null &
}

start_munged() { # who is who; it goes to the background by itself
    runs munged && return 0
    rm -f "$RUN"/munge*.sock* "$RUN/munged.pid"
    # By force: it is run as root, its state is in a folder that others may read.
    munged --force --key-file="$ETC/munge.key" --socket="$RUN/munge.sock" --pid-file="$RUN/munged.pid" \
        --seed-file="$RUN/munge.seed" --log-file="$LOG/munged.log" >>"$LOG/munged.out" 2>&1 </dev/null
}

start_database() {
    runs mariadbd && return 0
    # A temporary folder of its own: MariaDB removes all tables that it finds there, also those of a server beside it.
    local TMPDIR=$DIR/tmp
    export TMPDIR
    mkdir -p "$TMPDIR"
    if [ ! -d "$DIR/db" ]; then
        rm -rf "$DIR/db.new"
        mariadb-install-db --no-defaults --user=root --datadir="$DIR/db.new" --skip-test-db \
            --auth-root-authentication-method=normal --innodb-log-file-size=8M >"$LOG/mariadb-install.log" 2>&1 </dev/null ||
            die "no database could be made, see $LOG/mariadb-install.log"
        mv "$DIR/db.new" "$DIR/db"
    fi
    cat >"$ETC/init.sql" <<'SQL'
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';
SQL
    rm -f "$RUN/mariadbd.sock"
    start mariadbd mariadbd --no-defaults --user=root --datadir="$DIR/db" --pid-file="$RUN/mariadbd.pid" \
        --socket="$RUN/mariadbd.sock" --bind-address=127.0.0.1 --port="$DB_PORT" --init-file="$ETC/init.sql" \
        --skip-name-resolve --skip-log-bin --performance-schema=OFF --innodb-buffer-pool-size=24M \
        --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900 \
        --key-buffer-size=1M --max-connections=20
    await 30 bash -c "exec 3<>/dev/tcp/127.0.0.1/$DB_PORT" || die "mariadbd did not start, see $LOG/mariadbd.out"
}

start_accounting() {
    runs slurmdbd && return 0
    cat >"$ETC/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$RUN/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$DBD_PORT
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$DB_PORT
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
PidFile=$RUN/slurmdbd.pid
LogFile=$LOG/slurmdbd.log
$PLUGINS
CONF
    chmod 600 "$ETC/slurmdbd.conf" # it insists
    start slurmdbd slurmdbd -D
    await 30 sacctmgr -n -i show cluster || die "slurmdbd did not start, see $LOG/slurmdbd.log"
    if [ -z "$(sacctmgr -n -P show cluster "$CLUSTER" format=cluster)" ]; then
        sacctmgr -i add cluster "$CLUSTER" >/dev/null
    fi
}

start_nodes() {
    runs slurmctld || start slurmctld slurmctld -D
    local node
    for node in $(seq -f n%g "$NODES"); do
        mkdir -p "$DIR/spool/$node"
        runs slurmd "slurmd-$node" || start "slurmd-$node" slurmd -D ${STEPD:+-d "$STEPD"} -N "$node"
    done
}

nodes_are_up() { # one that a crash has left down is taken back; a new one takes a moment to register
    local node
    for node in $(sinfo -h -N -t down,drain,fail -o %N 2>/dev/null | sort -u); do
        scontrol update nodename="$node" state=resume 2>/dev/null || true
    done
    [ "$(sinfo -h -N -o '%N %T' | sort -u | grep -cE ' (idle|mixed|allocated|completing)$')" = "$NODES" ]
}

[ "$(id -u)" = 0 ] || die "only root can start a Slurm cluster; or set SLURM_CONF to that of one that runs"
install_missing
umask 022
mkdir -p "$ETC" "$RUN" "$LOG" "$DIR/state" "$DIR/spool"
write_settings
start_munged
start_database
start_accounting
start_nodes
await 60 nodes_are_up || die "the nodes did not come up, see $LOG"
say "$(sinfo -V) with $NODES nodes, in $DIR"
echo "export SLURM_CONF=$SLURM_CONF"
[ -z "$SUITE" ] || printf 'export %s\n' "SLURM_RELEASE=$RELEASE" "PATH=$CACHE/bin:\$PATH"
