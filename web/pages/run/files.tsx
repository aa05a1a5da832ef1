import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import type { StoredFile } from "../../../src/model/file.ts";
import type { Run } from "../../data/queries.ts";
import { Button, getButtonClass } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Code, Diff } from "../../parts/code.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatBytes } from "../../parts/numbers.ts";
import { saveAs } from "../../parts/save-as.ts";
import { toastError } from "../../parts/toasts.tsx";
import styles from "./files.module.css";

const Markdown = lazy(async () => ({ default: (await import("../../parts/markdown.tsx")).Markdown }));

const maxPreviewBytes = 512 * 1024;

export function Files({
  run,
  files,
  selectedPath,
}: {
  run: Run;
  files: readonly StoredFile[];
  selectedPath: string | null;
}) {
  const navigate = useNavigate();
  if (files.length === 0)
    return (
      <Card flush>
        <EmptyState icon="file" title="This run left no files">
          <p>Drover keeps the files that a run leaves in its work directory.</p>
        </EmptyState>
      </Card>
    );
  const file = files.find(({ path }) => path === selectedPath) ?? files[0]!;
  const choose = (path: string): void =>
    void navigate({
      to: "/runs/$runId",
      params: { runId: run.run_id },
      search: { tab: "files", file: path },
      replace: true,
      resetScroll: false,
    });
  return (
    <div className={styles["panes"]}>
      <Card
        title="Files"
        note={`${files.length}`}
        actions={
          <Button variant="quiet" icon="download" onClick={() => void saveAll(run, files).catch(toastError)}>
            Download all
          </Button>
        }
        flush
      >
        <ul className={styles["list"]}>
          {files.map((entry) => (
            <li key={entry.path}>
              <button type="button" aria-pressed={entry === file} onClick={() => choose(entry.path)}>
                <Icon name="file" />
                <span className="ellipsis mono grow">{entry.path}</span>
                <span className="faint">{formatBytes(entry.size)}</span>
              </button>
            </li>
          ))}
        </ul>
      </Card>
      <Card
        title={<span className="mono">{file.path}</span>}
        note={`${formatBytes(file.size)} · ${file.media_type}`}
        actions={
          <a className={getButtonClass("plain")} href={toUrl(run, file)} download>
            <Icon name="download" /> Download
          </a>
        }
      >
        <Preview key={file.sha256} run={run} file={file} />
      </Card>
    </div>
  );
}

function Preview({ run, file }: { run: Run; file: StoredFile }) {
  const kind = getPreviewKind(file);
  const text = useQuery({
    queryKey: ["file", file.sha256],
    enabled: kind !== "image" && kind !== "none",
    staleTime: Infinity,
    queryFn: async () => {
      const response = await fetch(toUrl(run, file));
      if (!response.ok)
        throw new Error(`Cannot read the file: the coordinator responded with status ${response.status}.`);
      return response.text();
    },
  });
  if (kind === "image") return <img className={styles["image"]} src={toUrl(run, file)} alt={file.path} />;
  if (kind === "none") return <p className="dim">No preview for this type of file.</p>;
  if (text.isError) return <ErrorNote error={text.error} />;
  if (text.data === undefined) return <Skeleton />;
  switch (kind) {
    case "markdown":
      return (
        <Suspense fallback={<Skeleton />}>
          <Markdown text={text.data} />
        </Suspense>
      );
    case "diff":
      return <Diff text={text.data.trimEnd()} />;
    case "csv":
      return <Csv text={text.data} />;
    case "text":
      return <Code text={text.data} tall label={file.path} />;
    default:
      return kind satisfies never;
  }
}

function Csv({ text }: { text: string }) {
  const rows = text.trim().split("\n").slice(0, 500).map(parseCells);
  return (
    <div className={styles["csv"]} tabIndex={0} role="region" aria-label="Table">
      <table>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (row === 0 ? <th key={index}>{cell}</th> : <td key={index}>{cell}</td>))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Splits a CSV line into cells. Quoted cells may contain commas and doubled quotes. */
function parseCells(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "",
  );
}

function getPreviewKind({
  path,
  media_type,
  size,
}: StoredFile): "image" | "markdown" | "diff" | "csv" | "text" | "none" {
  if (/^image\/(?:png|jpeg|gif|webp)$/.test(media_type)) return "image";
  if (size > maxPreviewBytes) return "none";
  if (/\.(?:diff|patch)$/.test(path)) return "diff";
  if (media_type === "text/markdown" || path.endsWith(".md")) return "markdown";
  if (media_type === "text/csv" || path.endsWith(".csv")) return "csv";
  return /^text\/|json|xml|yaml|javascript/.test(media_type) ||
    /\.(?:txt|log|ts|js|py|sh|html|svg|toml|ini)$/.test(path)
    ? "text"
    : "none";
}

function toUrl(run: Run, { path }: StoredFile): string {
  return `/runs/${run.run_id}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
}

async function saveAll(run: Run, files: readonly StoredFile[]): Promise<void> {
  const { buildZip } = await import("./zip.ts");
  const contents = await Promise.all(
    files.map(async (file) => {
      const response = await fetch(toUrl(run, file));
      if (!response.ok)
        throw new Error(`Cannot read ${file.path}: the coordinator responded with status ${response.status}.`);
      return { path: file.path, bytes: new Uint8Array(await response.arrayBuffer()) };
    }),
  );
  saveAs(buildZip(contents), `${run.agent_name}-${run.run_id.slice(-8)}.zip`);
}
