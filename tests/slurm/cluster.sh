#!/usr/bin/env bash
# A Slurm of one node on this machine, as Debian packages it (slurmctld, slurmd, slurm-client,
# munge), for the time of one command. Needs root. All files, ports and keys are its own.
#
# Usage: cluster.sh DIRECTORY COMMAND...: runs the command where sbatch and srun reach that Slurm;
# DIRECTORY must not exist.
set -euo pipefail

home=$1
shift
mkdir -m 755 "$home" "$home/state" "$home/spool"
home=$(cd "$home" && pwd)
host=$(hostname -s)
export SLURM_CONF=$home/slurm.conf
daemons=()

# What was started last ends first: a step that has no controller to report to would wait for one.
end() {
    local pid
    for _ in $(seq 100); do
        [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
        sleep 0.1
    done
    for pid in "${daemons[@]}"; do
        kill "$pid" 2>/dev/null || true
        timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" || true
    done
}
trap end EXIT

# A port that nobody listens at.
port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}

cat >"$SLURM_CONF" <<CONF
ClusterName=laggard
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(port)
SlurmdPort=$(port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge.socket
CredType=cred/munge
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF

(umask 077 && head -c 128 /dev/urandom >"$home/munge.key")
munged --foreground --force --key-file="$home/munge.key" --socket="$home/munge.socket" \
    --pid-file="$home/munge.pid" --seed-file="$home/munge.seed" --log-file="$home/munge.log" \
    >"$home/munged.out" 2>&1 &
daemons=($! "${daemons[@]}")
slurmctld -D -i >"$home/slurmctld.log" 2>&1 &
daemons=($! "${daemons[@]}")
slurmd -D -N "$host" >"$home/slurmd.log" 2>&1 &
daemons=($! "${daemons[@]}")

for _ in $(seq 100); do
    if [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; then
        "$@"
        exit
    fi
    sleep 0.3
done
echo "Slurm does not start; its logs are in $home:" >&2
tail -n 5 "$home"/*.log "$home/munged.out" >&2
exit 1
