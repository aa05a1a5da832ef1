import type { Registry } from "./registry.ts";

/** Called for each request when its response is sent. For a stream, when it starts. */
export type ObserveRequest = (method: string, path: string, status: number, seconds: number) => void;

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function watchRequests(registry: Registry): ObserveRequest {
  const count = registry.addCounter("drover_http_requests_total", "Requests, by route and status of the response.", [
    "method",
    "path",
    "status",
  ]);
  const duration = registry.addHistogram(
    "drover_http_request_duration_seconds",
    "Time from a request to its response, by route.",
    bounds,
    ["method", "path"],
  );
  return (method, path, status, seconds) => {
    count.add(1, method, path, String(status));
    duration.observe(seconds, method, path);
  };
}
