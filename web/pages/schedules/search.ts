/** The filters as they stand in the address. */
export interface SchedulesSearch {
  agent?: string;
  only?: "failing";
}

export function readSchedulesSearch(given: Record<string, unknown>): SchedulesSearch {
  const agent = given["agent"];
  return {
    // the router reads a number where the address has one
    ...((typeof agent === "string" && agent !== "") || typeof agent === "number" ? { agent: String(agent) } : {}),
    ...(given["only"] === "failing" ? { only: "failing" } : {}),
  };
}
