import type { StoredFile } from "../../model/file.ts";
import type { RecordDeps } from "../deps.ts";
import { notFound, Refusal } from "../refusal.ts";
import { BytesReply, Reply } from "../reply.ts";
import { routeWith } from "../route.ts";
import { anyone } from "../rule.ts";

const route = routeWith<RecordDeps>();

export const fileRoutes = [
  route("GET /runs/{run_id}/files", {
    rule: { roles: anyone, object: "run", attempt: true },
    handle: async ({ deps, object }) => ({ items: await deps.store.read.files(object.run_id), next_cursor: null }),
  }),
  route("GET /runs/{run_id}/files/{path*}", {
    rule: { roles: anyone, object: "run", attempt: true },
    async handle({ deps, object, params: { path = "" }, headers }) {
      const file = await deps.store.read.file(object.run_id, path);
      if (file === null) throw notFound("file", "path.path");
      const etag = `"${file.sha256}"`;
      if (headers["if-none-match"] === etag) return new Reply(304, undefined, { etag });
      const blob = await deps.store.blobs.open(file.sha256);
      if (blob === null) throw missing(file);
      return new BytesReply(blob.stream, headersOf(file, blob.size));
    },
  }),
];

/** Written by strangers: nothing of it may be run, shown inside a page of ours, or taken for something else. */
function headersOf({ path, sha256, media_type }: StoredFile, size: number): Record<string, string> {
  return {
    "content-type": shownAs.get(media_type.toLowerCase()) ?? "application/octet-stream",
    "content-length": String(size),
    "content-disposition": `attachment; filename*=UTF-8''${encoded(path.slice(path.lastIndexOf("/") + 1))}`,
    etag: `"${sha256}"`,
    "cache-control": "private, no-cache",
    "content-security-policy": "default-src 'none'; sandbox",
  };
}

/** Types that no browser runs anything of. */
const shownAs = new Map([
  ...["text/plain", "text/markdown", "text/csv", "application/json"].map((type): [string, string] => [
    type,
    `${type}; charset=utf-8`,
  ]),
  ...["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"].map((type): [string, string] => [
    type,
    type,
  ]),
]);

/** As RFC 5987 has it. A backslash is a separator where some will save it. */
function encoded(name: string): string {
  return encodeURIComponent(name.replaceAll("\\", "_")).replaceAll(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function missing({ path, sha256 }: StoredFile): Refusal {
  return new Refusal(503, "DROVER-STA-006", `The contents of ${path} (${sha256}) are not where the record has files.`, {
    next: "Restore the folder files/ of the state directory from a backup.",
  });
}
