import type { Execution } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { ExecutionTable } from "../../parts/execution-table.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";

export function Audit({ executions }: { executions: readonly Execution[] }) {
  return (
    <Card title="Programs this run started" note="recorded before each one starts" flush>
      {executions.length === 0 ? (
        <EmptyState icon="audit" title="This run started no programs">
          <p>Every process that Drover spawns is recorded here.</p>
        </EmptyState>
      ) : (
        <ExecutionTable executions={executions} />
      )}
    </Card>
  );
}
