#!/bin/sh
# As obeys.sh, but neither it nor its child listens to SIGTERM.
trap '' TERM
for word in "$@"; do fifo=$word; done
exec 9>"${fifo#--fifo=}"
sleep 1000 &
while :; do wait; done
