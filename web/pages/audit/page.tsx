import { useInfiniteQuery } from "@tanstack/react-query";
import { queries } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { ExecutionTable } from "../../parts/execution-table.tsx";

export function Page() {
  const query = useInfiniteQuery(queries.allExecutions());
  const executions = (query.data?.pages ?? []).flatMap(({ items }) => items);
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Audit</h1>
      {query.isError ? <ErrorNote error={query.error} /> : null}
      <div className="stack">
        <Card title="The chain" note="each record is sealed with the one before it">
          <div className="stack tight" style={{ maxWidth: 640 }}>
            <p className="dim">
              Prove that nothing was changed or removed since it was written, where the key of the record is:
            </p>
            <Command text="drover audit verify" />
            <p className="dim">Or take the whole record away, one JSON line each:</p>
            <Command text="drover audit export > audit.jsonl" />
          </div>
        </Card>
        <Card title="Programs" note="recorded before each of them began, newest first" flush>
          {query.isPending ? (
            <Skeleton />
          ) : executions.length === 0 ? (
            <Empty icon="audit" title="No program was started yet">
              <Command text={'drover exec "echo hello"'} />
            </Empty>
          ) : (
            <ExecutionTable executions={executions} withRun />
          )}
        </Card>
        {query.hasNextPage ? (
          <p>
            <Button onClick={() => void query.fetchNextPage()}>Show older ones</Button>
          </p>
        ) : null}
      </div>
    </>
  );
}
