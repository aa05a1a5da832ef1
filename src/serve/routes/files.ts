import type { StoredFile } from "../../model/file.ts";
import type { RecordDeps } from "../deps.ts";
import { notFound, Refusal } from "../refusal.ts";
import { BytesReply, Reply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people } from "../rule.ts";

const route = createRouteBuilder<RecordDeps>();

export const fileRoutes = [
  route("GET /runs/{run_id}/files", {
    rule: { roles: people, object: "run", attempt: true },
    handle: async ({ deps, object }) => ({ items: await deps.store.read.files(object.run_id), next_cursor: null }),
  }),
  route("GET /runs/{run_id}/files/{path*}", {
    rule: { roles: people, object: "run", attempt: true },
    async handle({ deps, object, params: { path = "" }, headers }) {
      const file = await deps.store.read.file(object.run_id, path);
      if (file === null) throw notFound("file", "path.path");
      const etag = `"${file.sha256}"`;
      if (headers["if-none-match"] === etag) return new Reply(304, undefined, { etag });
      const blob = await deps.store.blobs.open(file.sha256);
      if (blob === null) throw missingContents(file);
      return new BytesReply(blob.stream, buildHeaders(file, blob.size));
    },
  }),
];

/** The contents are untrusted: a browser must not execute them, embed them in our pages or guess their type. */
function buildHeaders({ path, sha256, media_type }: StoredFile, size: number): Record<string, string> {
  return {
    "content-type": safeTypes.get(media_type.toLowerCase()) ?? "application/octet-stream",
    "content-length": String(size),
    "content-disposition": `attachment; filename*=UTF-8''${encodeFileName(path.slice(path.lastIndexOf("/") + 1))}`,
    etag: `"${sha256}"`,
    "cache-control": "private, no-cache",
    "content-security-policy": "default-src 'none'; sandbox",
  };
}

/** Media types that browsers do not execute. */
const safeTypes = new Map([
  ...["text/plain", "text/markdown", "text/csv", "application/json"].map((type): [string, string] => [
    type,
    `${type}; charset=utf-8`,
  ]),
  ...["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"].map((type): [string, string] => [
    type,
    type,
  ]),
]);

/** Encodes by RFC 5987. Replaces backslashes, which are path separators on Windows. */
function encodeFileName(name: string): string {
  return encodeURIComponent(name.replaceAll("\\", "_")).replaceAll(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function missingContents({ path, sha256 }: StoredFile): Refusal {
  return new Refusal(503, "DROVER-STA-006", `The contents of ${path} (${sha256}) are missing from the file store.`, {
    next: "Restore the directory record/files of the state directory from a backup.",
  });
}
