/** The filters as stored in the URL. */
export interface SchedulesSearch {
  agent?: string;
  only?: "failing";
}

export function readSchedulesSearch(params: Record<string, unknown>): SchedulesSearch {
  const agent = params["agent"];
  return {
    // The router parses numeric values as numbers.
    ...((typeof agent === "string" && agent !== "") || typeof agent === "number" ? { agent: String(agent) } : {}),
    ...(params["only"] === "failing" ? { only: "failing" } : {}),
  };
}
