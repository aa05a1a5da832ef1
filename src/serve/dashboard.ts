import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Refusal } from "./refusal.ts";
import { securityHeaders, renderRefusal } from "./render.ts";

export type ServeDashboard = (path: string, acceptEncoding: string | undefined) => Promise<Response>;

/** Placeholder in index.html, replaced with a new nonce in each response. */
const noncePlaceholder = "__NONCE__";

const contentTypes = new Map([
  ["js", "text/javascript; charset=utf-8"],
  ["css", "text/css; charset=utf-8"],
  ["svg", "image/svg+xml"],
  ["woff2", "font/woff2"],
]);

interface WebFile {
  bytes: Uint8Array<ArrayBuffer>;
  gzipped: Uint8Array<ArrayBuffer> | null;
  type: string;
}

/**
 * Serves the built dashboard without authentication: it contains no data. Files under assets/ have a hash in their name
 * and never change. Every other path returns the page itself.
 */
export function createDashboard(directory: string | null): ServeDashboard {
  const cache = new Map<string, WebFile>();
  return async (path, acceptEncoding) => {
    if (directory === null) return renderRefusal(notBuilt());
    const name = parseFileName(path);
    if (name === null) return renderPage(directory);
    const file = cache.get(name) ?? (await loadFile(directory, name));
    if (file === null)
      return renderRefusal(new Refusal(404, "DROVER-API-007", `There is no file /ui/${name.slice(0, 200)}.`));
    cache.set(name, file);
    const gzipped = /\bgzip\b/.test(acceptEncoding ?? "") ? file.gzipped : null;
    return new Response(gzipped ?? file.bytes, {
      headers: {
        ...securityHeaders,
        "content-type": file.type,
        "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
        "content-security-policy": "default-src 'none'; connect-src 'self'; script-src 'self'",
        ...(gzipped ? { "content-encoding": "gzip" } : {}),
        vary: "accept-encoding",
      },
    });
  };
}

/** Returns null for a page of the app, which routes on the client side. */
function parseFileName(path: string): string | null {
  const name = path.replace(/^\/ui\/?/, "");
  return /^(?:assets\/)?[\w-]+(?:\.[\w-]+)*\.(?:js|css|svg|woff2)$/.test(name) ? name : null;
}

async function loadFile(directory: string, name: string): Promise<WebFile | null> {
  try {
    const bytes = new Uint8Array(await readFile(join(directory, name)));
    const type = contentTypes.get(name.slice(name.lastIndexOf(".") + 1)) ?? "application/octet-stream";
    return { bytes, gzipped: type.startsWith("font/") ? null : new Uint8Array(gzipSync(bytes)), type };
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, "code") === "ENOENT") return null;
    throw error;
  }
}

async function renderPage(directory: string): Promise<Response> {
  const html = await readFile(join(directory, "index.html"), "utf8");
  const nonce = randomBytes(16).toString("base64");
  return new Response(html.replaceAll(noncePlaceholder, nonce), {
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
  return new Refusal(404, "DROVER-WEB-002", "This copy of Drover does not include the dashboard.", {
    next: "Build it with `npm run build`, or use the command line: `drover runs list`.",
  });
}
