import { useInfiniteQuery } from "@tanstack/react-query";
import { queries } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { ExecutionTable } from "../../parts/execution-table.tsx";
import { Chain } from "./chain.tsx";

export function Page() {
  const query = useInfiniteQuery(queries.allExecutions());
  const executions = (query.data?.pages ?? []).flatMap(({ items }) => items);
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Audit</h1>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      <div className="stack">
        <Chain />
        <Card title="Programs" note="recorded before each one starts, newest first" flush>
          {query.isPending ? (
            <Skeleton />
          ) : executions.length === 0 ? (
            <EmptyState icon="audit" title="No programs started yet">
              <Command text={'drover exec "echo hello"'} />
            </EmptyState>
          ) : (
            <ExecutionTable executions={executions} withRun />
          )}
        </Card>
        {query.hasNextPage ? (
          <p>
            <Button onClick={() => void query.fetchNextPage()}>Show older</Button>
          </p>
        ) : null}
      </div>
    </>
  );
}
