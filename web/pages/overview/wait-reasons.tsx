import type { Stats } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Meters } from "../../parts/meters.tsx";
import { formatCount } from "../../parts/numbers.ts";

/** For the reasons that `GET /runs/{run_id}/why` returns. */
const reasonLabels: Record<string, string> = {
  turn: "their turn",
  slots: "a free slot",
  agent: "a runner with the agent",
  runner_id: "an offline runner",
  session: "an earlier run of the session",
  directory: "a directory to be free",
  max_concurrent: "the agent to drop below its max_concurrent",
  tags: "a runner with the tags",
  hostname: "a runner on the host",
  executor_profile: "a runner with the profile",
  project_dir: "a runner for the directory",
  approval: "an answer",
  budget: "more budget",
  usage_limit: "the usage limit to reset",
  disk: "disk space",
  descriptors: "file descriptors on a runner",
};

/** The number of waiting runs by reason. */
export function WaitReasons({ stats: { waiting } }: { stats: Stats }) {
  const total = waiting.reduce((sum, group) => sum + group.count, 0);
  if (total === 0) return null;
  return (
    <Card title="Waiting for" note={`${formatCount(total)} ${total === 1 ? "run" : "runs"}`}>
      <Meters
        rows={waiting.slice(0, 6).map((group) => ({
          name: reasonLabels[group.reason] ?? group.reason,
          value: group.count,
          label: formatCount(group.count),
          link: { to: "/runs", search: { status: ["pending", "waiting", "parked"] } },
        }))}
        tone="wait"
      />
    </Card>
  );
}
