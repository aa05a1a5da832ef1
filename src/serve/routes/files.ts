import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import type { StoredFile } from "../../model/file.ts";
import { pageOf, storedFileSchema } from "../../wire/schemas.ts";
import { notFound, Refusal } from "../refusal.ts";
import { alreadySent, json, route } from "../route.ts";
import { anyone } from "../rule.ts";

export const fileRoutes = [
  route({
    method: "get",
    path: "/runs/{run_id}/files",
    rule: { roles: anyone, object: "run", attempt: true },
    summary: "The files a run left",
    answers: { 200: { description: "Those of its last attempt, by path", schema: pageOf(storedFileSchema) } },
    async handle({ deps, object }) {
      return json({ items: await deps.store.read.files(object.run_id), next_cursor: null });
    },
  }),
  route({
    method: "get",
    path: "/runs/{run_id}/files/{path*}",
    rule: { roles: anyone, object: "run", attempt: true },
    summary: "One file of a run",
    answers: {
      200: { description: "Its contents", media: "application/octet-stream", schema: z.string() },
      304: { description: "It is what If-None-Match says" },
    },
    async handle({ deps, object, params: { path = "" }, headers, outgoing }) {
      const file = await deps.store.read.file(object.run_id, path);
      if (file === null) throw notFound("file", "path.path");
      const etag = `"${file.sha256}"`;
      if (headers["if-none-match"] === etag) return new Response(null, { status: 304, headers: { etag } });
      const blob = await deps.store.blobs.open(file.sha256);
      if (blob === null) throw missing(file);
      outgoing.writeHead(200, headersOf(file, blob.size));
      await send(blob.stream, outgoing, (error) => deps.onDefect(error, "get a file"));
      return alreadySent();
    },
  }),
];

/** Written by strangers: nothing of it may be run, shown inside a page of ours, or taken for something else. */
function headersOf({ path, sha256, media_type }: StoredFile, size: number): Record<string, string | number> {
  return {
    "content-type": shownAs.get(media_type.toLowerCase()) ?? "application/octet-stream",
    "content-length": size,
    "content-disposition": `attachment; filename*=UTF-8''${encoded(path.slice(path.lastIndexOf("/") + 1))}`,
    etag: `"${sha256}"`,
    "cache-control": "private, no-cache",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
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

async function send(
  stream: NodeJS.ReadableStream,
  outgoing: ServerResponse,
  onDefect: (error: unknown) => void,
): Promise<void> {
  try {
    await pipeline(stream, outgoing);
  } catch (error) {
    // the head is out: a cut answer, shorter than it said, is how the other side learns of it
    if (!outgoing.destroyed) onDefect(error);
    outgoing.destroy();
  }
}

function missing({ path, sha256 }: StoredFile): Refusal {
  return new Refusal(503, "DROVER-STA-006", `The contents of ${path} (${sha256}) are not where the record has files.`, {
    next: "Restore the folder files/ of the state directory from a backup.",
  });
}
