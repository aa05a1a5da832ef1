/** The filters as stored in the URL. */
export interface SchedulesSearch {
  agent?: string;
  only?: "failing";
}

export function readSchedulesSearch(given: Record<string, unknown>): SchedulesSearch {
  const agent = given["agent"];
  return {
    // The router parses numeric values as numbers.
    ...((typeof agent === "string" && agent !== "") || typeof agent === "number" ? { agent: String(agent) } : {}),
    ...(given["only"] === "failing" ? { only: "failing" } : {}),
  };
}
