export interface OverviewSearch {
  /** In hours. */
  last?: number;
}

export const spans: readonly { hours: number; word: string }[] = [
  { hours: 24, word: "24 hours" },
  { hours: 168, word: "7 days" },
  { hours: 720, word: "30 days" },
];

export function readOverviewSearch(given: Record<string, unknown>): OverviewSearch {
  const last = Number(given["last"]);
  return spans.some(({ hours }) => hours === last) ? { last } : {};
}
