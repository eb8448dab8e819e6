#!/bin/sh
# Starts a command on another host, as ssh would: `agent.sh HOST COMMAND…`. Hosts are namespaces
# of processes; $TEST_HOSTS/HOST.pid says of which. Open MPI is told to start its daemons so.
set -e
host=$1
shift
process=$(cat "$TEST_HOSTS/$host.pid")
exec nsenter --all --target "$process" -- /bin/sh -c "$*"
