import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { queries } from "../../data/queries.ts";
import { useRunEvents } from "../../data/run-events.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Audit } from "./audit.tsx";
import { ChildQuestions } from "./child-questions.tsx";
import { Header } from "./header.tsx";
import { Raw } from "./raw.tsx";
import { Result, ShortResult } from "./result.tsx";
import { type RunSearch, type Tab, tabs } from "./search.ts";
import { Timeline } from "./timeline.tsx";
import { WhyWaiting } from "./why-waiting.tsx";
import styles from "../../parts/tabs.module.css";

const Conversation = lazy(async () => ({ default: (await import("../../parts/conversation.tsx")).Conversation }));
const Log = lazy(async () => ({ default: (await import("./log.tsx")).Log }));
const Files = lazy(async () => ({ default: (await import("./files.tsx")).Files }));

const tabLabels: Record<Tab, string> = {
  timeline: "Timeline",
  conversation: "Conversation",
  log: "Log",
  result: "Result",
  files: "Files",
  audit: "Audit",
  raw: "Raw events",
};

export function Page() {
  const { runId = "" } = useParams({ strict: false });
  return <RunPage key={runId} run_id={runId} />;
}

function RunPage({ run_id }: { run_id: string }) {
  // The route validates the search parameters.
  const { tab = "timeline", step, file } = useSearch({ strict: false }) as RunSearch;
  const query = useQuery(queries.run(run_id));
  const files = useQuery(queries.files(run_id));
  const executions = useQuery(queries.executions(run_id));
  const log = useRunEvents(run_id);
  const agents = useQuery(queries.agents());
  const run = query.data;
  useEffect(() => {
    if (run) document.title = `${run.agent_name} · ${run.status} · Drover`;
    return () => void (document.title = "Drover");
  }, [run?.agent_name, run?.status]);
  if (query.isError) return <ErrorNote error={query.error} />;
  if (run === undefined) return <Skeleton rows={8} />;
  const isProcedural = agents.data?.find(({ name }) => name === run.agent_name)?.type === "procedural";
  const counts: Partial<Record<Tab, number>> = {
    files: files.data?.length ?? 0,
    audit: executions.data?.length ?? 0,
  };
  return (
    <>
      <Header run={run} />
      <WhyWaiting run={run} />
      <ChildQuestions run_id={run_id} />
      <nav className={styles["tabs"]} aria-label="Run sections">
        {tabs.map((section) => (
          <Link
            key={section}
            to="/runs/$runId"
            params={{ runId: run_id }}
            search={section === "timeline" ? {} : { tab: section }}
            replace
            resetScroll={false}
            // Without this, the link of the first tab, which has no search parameters, would always be current.
            activeOptions={{ exact: true, includeSearch: true }}
            aria-current={section === tab ? "page" : undefined}
          >
            {tabLabels[section]}
            {counts[section] ? <span className="faint"> {counts[section]}</span> : null}
          </Link>
        ))}
      </nav>
      {log.error ? <ErrorNote error={log.error} /> : null}
      <Suspense fallback={<Skeleton rows={5} />}>
        {tab === "timeline" ? (
          <>
            {isProcedural ? <ShortResult run={run} /> : null}
            <Timeline run={run} log={log} selectedId={step ?? null} />
          </>
        ) : null}
        {tab === "conversation" ? <Conversation run={run} log={log} /> : null}
        {tab === "log" ? <Log run={run} log={log} /> : null}
        {tab === "result" ? <Result run={run} /> : null}
        {tab === "files" ? <Files run={run} files={files.data ?? []} selectedPath={file ?? null} /> : null}
        {tab === "audit" ? <Audit executions={executions.data ?? []} /> : null}
        {tab === "raw" ? <Raw log={log} /> : null}
      </Suspense>
    </>
  );
}
