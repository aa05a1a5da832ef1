import { Link } from "@tanstack/react-router";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";

/** Shown instead of a list without runs. If filters hide the runs, offers to show all of them. */
export function NoRuns({ hasFilter }: { hasFilter: boolean }) {
  const body = JSON.stringify({ agent_name: "echo", parameters: { message: "Hello World" } });
  return (
    <Card flush>
      {hasFilter ? (
        <EmptyState icon="search" title="No run matches these filters">
          <Link to="/runs">Show all runs</Link>
        </EmptyState>
      ) : (
        <EmptyState icon="runs" title="No runs yet">
          <p>Start the first run from a terminal, and watch it appear here:</p>
          <Command text={'drover run echo --message "Hello World"'} />
          <p>Or over HTTP, with a token in DROVER_API_KEY:</p>
          <Command
            text={`curl -s ${location.origin}/runs -H "Authorization: Bearer $DROVER_API_KEY" \\\n  -H "Content-Type: application/json" -d '${body}'`}
          />
        </EmptyState>
      )}
    </Card>
  );
}
