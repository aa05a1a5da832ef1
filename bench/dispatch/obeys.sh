#!/bin/sh
# Holds the fifo it is given, with a child that holds it too, until it is told to end.
for word in "$@"; do fifo=$word; done
exec 9>"${fifo#--fifo=}"
sleep 1000 &
wait
