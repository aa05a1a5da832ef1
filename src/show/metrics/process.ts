import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Registry } from "./registry.ts";

const resolutionMs = 20;
const quantiles = [0.5, 0.99, 1];

/** Of this process itself. What it returns ends the measuring. */
export function watchProcess(registry: Registry, info: Readonly<Record<string, string>>): () => void {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  registry.asked(
    {
      drover_build_info: { type: "gauge", help: "Always 1; what runs is in its labels." },
      drover_event_loop_delay_seconds: {
        type: "gauge",
        help: "How late the event loop was since it was last asked: median, 99th percentile, worst.",
      },
      process_cpu_seconds_total: { type: "counter", help: "CPU time of this process, user and system." },
      process_resident_memory_bytes: { type: "gauge", help: "Memory of this process." },
      process_start_time_seconds: { type: "gauge", help: "When this process started, as a Unix time." },
      nodejs_heap_size_used_bytes: { type: "gauge", help: "Of the JavaScript heap, what is in use." },
    },
    () => {
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed } = process.memoryUsage();
      const late = quantiles.map((quantile) => ({
        labels: { quantile: String(quantile) },
        value: latenessOf(quantile === 1 ? delays.max : delays.percentile(quantile * 100), delays.count),
      }));
      delays.reset();
      return {
        drover_build_info: [{ labels: info, value: 1 }],
        drover_event_loop_delay_seconds: late,
        process_cpu_seconds_total: (user + system) / 1e6,
        process_resident_memory_bytes: rss,
        process_start_time_seconds: Math.round((performance.timeOrigin / 1000) * 1000) / 1000,
        nodejs_heap_size_used_bytes: heapUsed,
      };
    },
  );
  return () => void delays.disable();
}

/** It measures from one look to the next, so that one in time is a resolution long. */
function latenessOf(nanoseconds: number, looks: number): number {
  return looks === 0 ? 0 : Math.max(0, Math.round(nanoseconds / 1e3) / 1e6 - resolutionMs / 1000);
}
