import { createHash } from "node:crypto";
import type { OpenApiDocument, Operation } from "./openapi-document.ts";

const css = `
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1rem; margin: 0; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); padding: .8rem 0; } p { margin: .2rem 0; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; } .who, .soft { color: var(--soft); }
table { border-collapse: collapse; margin: .3rem 0; } td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; } pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line); }
summary { cursor: pointer; color: var(--soft); }
`;

/** Renders the document as one page without scripts or external resources. */
export function renderDocsPage(document: OpenApiDocument): { html: string; contentSecurityPolicy: string } {
  const hash = createHash("sha256").update(css).digest("base64");
  return {
    html: renderPage(document),
    contentSecurityPolicy: `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

function renderPage(document: OpenApiDocument): string {
  const sections = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => renderSection(method, path, operation)),
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Drover: HTTP API</title><style>${css}</style></head><body>
<h1>Drover ${escape(document.info.version)}: HTTP API</h1>
<p>Send <code>Authorization: Bearer TOKEN</code>. The first admin token is in the file <code>record/token</code> of the state directory, which <code>drover state</code> shows.
For programs: <a href="/openapi.json">openapi.json</a>.</p>
<pre>curl -H "Authorization: Bearer $DROVER_API_KEY" -H "Content-Type: application/json" \\
  -d '{"agent_name":"echo","parameters":{"message":"Hello World"}}' http://127.0.0.1:8765/runs</pre>
${sections.join("\n")}
</body></html>`;
}

function renderSection(method: string, path: string, operation: Operation): string {
  const parameters = operation.parameters.map(
    (parameter) =>
      `<tr><td><code>${escape(parameter.name)}</code></td><td class="soft">${escape(parameter.in)}${parameter.required ? ", required" : ""}</td><td>${renderSchema(parameter.schema)}</td></tr>`,
  );
  const responses = Object.entries(operation.responses).map(([status, { description, content }]) => {
    const media = Object.entries(content ?? {})[0];
    return `<tr><td>${escape(status)}</td><td>${escape(description)}${media ? renderDetails(media[0], media[1].schema) : ""}</td></tr>`;
  });
  const body = operation.requestBody?.content["application/json"];
  return `<section><h2><span class="method">${escape(method.toUpperCase())}</span> ${escape(path)}</h2>
<p>${escape(operation.summary)}</p><p class="who">${escape(operation.description)}</p>
${parameters.length > 0 ? `<table>${parameters.join("")}</table>` : ""}
${body ? renderDetails("body", body.schema) : ""}
<table>${responses.join("")}</table></section>`;
}

function renderDetails(title: string, schema: unknown): string {
  return schema === undefined
    ? ""
    : `<details><summary>${escape(title)}</summary><pre>${escape(JSON.stringify(schema, null, 1))}</pre></details>`;
}

function renderSchema(schema: unknown): string {
  return schema === undefined ? "" : `<code>${escape(JSON.stringify(schema))}</code>`;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
