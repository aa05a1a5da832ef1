#!/bin/sh
# Holds the given fifo open, together with a child, until SIGTERM.
for word in "$@"; do fifo=$word; done
exec 9>"${fifo#--fifo=}"
sleep 1000 &
wait
