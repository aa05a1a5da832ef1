export interface OverviewSearch {
  /** In hours. */
  last?: number;
}

export const timeRanges: readonly { hours: number; label: string }[] = [
  { hours: 24, label: "24 hours" },
  { hours: 168, label: "7 days" },
  { hours: 720, label: "30 days" },
];

export function readOverviewSearch(params: Record<string, unknown>): OverviewSearch {
  const last = Number(params["last"]);
  return timeRanges.some(({ hours }) => hours === last) ? { last } : {};
}
