import type { Run } from "../../data/queries.ts";

/** Returns a curl command that repeats the run's request. */
export function toCurlCommand(run: Run): string {
  const body = {
    agent_name: run.agent_name,
    ...(Object.keys(run.parameters).length > 0 ? { parameters: run.parameters } : {}),
    ...(run.prompt === null ? {} : { prompt: run.prompt }),
  };
  return [
    `curl -s ${location.origin}/runs -H "Authorization: Bearer $DROVER_API_KEY"`,
    `  -H "Content-Type: application/json" -d ${quote(JSON.stringify(body))}`,
  ].join(" \\\n");
}

/** Returns a `drover run` command that repeats the run's request. */
export function toDroverCommand(run: Run): string {
  const options = Object.entries(run.parameters).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `--${name} ${quote(text)}`;
  });
  return ["drover run", quote(run.agent_name), ...(run.prompt === null ? [] : [quote(run.prompt)]), ...options].join(
    " ",
  );
}

/** Quotes the text as one shell argument. */
function quote(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
