export function formatMoney(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return "—";
  return usd > 0 && usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

export function formatCount(value: number): string {
  return value.toLocaleString("en-US");
}

export function formatBytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KB`;
  return `${(size / 1048576).toFixed(1)} MB`;
}

/** Shortens an id to its last eight characters, as the command line shows and accepts them. */
export function formatShortId(id: string): string {
  return `…${id.slice(-8)}`;
}
