#!/bin/sh
# Like obeys.sh, but it and its child ignore SIGTERM.
trap '' TERM
for word in "$@"; do fifo=$word; done
exec 9>"${fifo#--fifo=}"
sleep 1000 &
while :; do wait; done
