export function readWebhooksSearch(given: Record<string, unknown>): object {
  return given;
}
