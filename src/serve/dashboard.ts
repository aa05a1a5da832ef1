import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Refusal } from "./refusal.ts";
import { securityHeaders, renderRefusal } from "./render.ts";

export type ServeDashboard = (path: string, acceptEncoding: string | undefined) => Promise<Response>;

/** Where index.html has the nonce of its answer. */
const noncePlace = "__NONCE__";

const types = new Map([
  ["js", "text/javascript; charset=utf-8"],
  ["css", "text/css; charset=utf-8"],
  ["svg", "image/svg+xml"],
  ["woff2", "font/woff2"],
]);

interface WebFile {
  bytes: Uint8Array<ArrayBuffer>;
  zipped: Uint8Array<ArrayBuffer> | null;
  type: string;
}

/**
 * The built dashboard, to anybody: it is the same for everyone, and holds nothing of the record. Files under assets/
 * have a hash in their name and never change; every other path is the page itself.
 */
export function createDashboard(folder: string | null): ServeDashboard {
  const known = new Map<string, WebFile>();
  return async (path, acceptEncoding) => {
    if (folder === null) return renderRefusal(notBuilt());
    const name = fileName(path);
    if (name === null) return page(folder);
    const file = known.get(name) ?? (await load(folder, name));
    if (file === null)
      return renderRefusal(new Refusal(404, "DROVER-API-007", `There is no /ui/${name.slice(0, 200)} here.`));
    known.set(name, file);
    const zipped = file.zipped !== null && /\bgzip\b/.test(acceptEncoding ?? "");
    return new Response(zipped ? file.zipped : file.bytes, {
      headers: {
        ...securityHeaders,
        "content-type": file.type,
        "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
        "content-security-policy": "default-src 'none'; connect-src 'self'; script-src 'self'",
        ...(zipped ? { "content-encoding": "gzip" } : {}),
        vary: "accept-encoding",
      },
    });
  };
}

/** null: no file, but a page of the app, whose address the app reads itself. */
function fileName(path: string): string | null {
  const name = path.replace(/^\/ui\/?/, "");
  return /^(?:assets\/)?[\w-]+(?:\.[\w-]+)*\.(?:js|css|svg|woff2)$/.test(name) ? name : null;
}

async function load(folder: string, name: string): Promise<WebFile | null> {
  try {
    const bytes = new Uint8Array(await readFile(join(folder, name)));
    const type = types.get(name.slice(name.lastIndexOf(".") + 1)) ?? "application/octet-stream";
    return { bytes, zipped: type.startsWith("font/") ? null : new Uint8Array(gzipSync(bytes)), type };
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, "code") === "ENOENT") return null;
    throw error;
  }
}

async function page(folder: string): Promise<Response> {
  const html = await readFile(join(folder, "index.html"), "utf8");
  const nonce = randomBytes(16).toString("base64");
  return new Response(html.replaceAll(noncePlace, nonce), {
    headers: {
      ...securityHeaders,
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": [
        "default-src 'none'",
        "script-src 'self'",
        `style-src 'self' 'nonce-${nonce}'`,
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
      ].join("; "),
    },
  });
}

function notBuilt(): Refusal {
  return new Refusal(404, "DROVER-WEB-002", "The dashboard was not built into this copy of Drover.", {
    next: "Build it with `npm run build`, or use the command line: `drover runs list`.",
  });
}
