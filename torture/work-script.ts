/** A command that leaves a mark unique to its execution, then does what its options say. */
export function createWorkScript(marks: string): string {
  return `#!/bin/sh
: > "${marks}/$DROVER_RUN_ID.$DROVER_ATTEMPT.$DROVER_EXECUTION_ID"
lines=1 pause=0 stay=0 after=
while [ $# -gt 0 ]; do
  case $1 in
    --ignore-sigterm) trap '' TERM; shift ;;
    --lines) lines=$2; shift 2 ;;
    --pause) pause=$2; shift 2 ;;
    --stay) stay=$2; shift 2 ;;
    --after) after=$2; shift 2 ;;
    *) echo "unknown $1" >&2; exit 2 ;;
  esac
done
while [ -n "$after" ] && [ ! -e "$after" ]; do sleep 0.05; done
i=1
while [ $i -le $lines ]; do
  echo "line $i"
  i=$((i + 1))
  [ $pause = 0 ] || sleep $pause
done
# in a loop, because SIGTERM ends the sleep even if this script ignores it
while [ $stay != 0 ]; do sleep $stay; done
`;
}
