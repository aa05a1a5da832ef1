import type { Testbed } from "./testbed.ts";

/** How long one request may block a coordinator's event loop. */
export const stallMs = 100;

/** The longest stall of any coordinator, and the defects they reported. */
export async function readStalls({
  coordinators,
}: Testbed): Promise<{ longest: number; withOthers: number; defects: string[] }> {
  const stalls = { longest: 0, withOthers: 0, defects: [] as string[] };
  for (const { child } of coordinators) {
    child.signal("SIGUSR2");
    const [, own = "0", all = "0"] = await child.waitForOutput(/^stalled (\d+) (\d+)$/m);
    stalls.longest = Math.max(stalls.longest, Number(own));
    stalls.withOthers = Math.max(stalls.withOthers, Number(all));
    const defects = child.output.replaceAll(/^(serving|stalled \d+ \d+)$/gm, "").trim();
    if (defects !== "") stalls.defects.push(`a coordinator complained: ${defects}`);
  }
  return stalls;
}
