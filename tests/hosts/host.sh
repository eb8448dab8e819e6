#!/bin/sh
# What runs on a host as long as it exists: `host.sh NAME HOSTS [CLOCK_SOURCE]`, started in new
# network, UTS and mount namespaces. HOSTS becomes /etc/hosts there. CLOCK_SOURCE, a file, becomes
# what the kernel says it takes the time from: where that is not "tsc" the collector reads
# CLOCK_MONOTONIC, which time namespaces shift, and not the processor's counter, which they do not.
#
# Says "ready", then lives until its input ends, however the test ends; with it, a process
# namespace's first process, ends all else on the host.
set -e
hostname "$1"
mount --bind "$2" /etc/hosts
if [ -n "$3" ]; then
    mount --bind "$3" /sys/devices/system/clocksource/clocksource0/current_clocksource
fi
ip link set lo up
echo ready
exec cat >/dev/null
