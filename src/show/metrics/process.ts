import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Registry } from "./registry.ts";

const resolutionMs = 20;
const quantiles = [0.5, 0.99, 1];

/** Registers metrics of this process. Returns a function that stops measuring. */
export function watchProcess(registry: Registry, info: Readonly<Record<string, string>>): () => void {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  registry.collect(
    {
      drover_build_info: { type: "gauge", help: "Always 1; the labels describe the build." },
      drover_event_loop_delay_seconds: {
        type: "gauge",
        help: "Event loop delay since the last scrape: median, 99th percentile, maximum.",
      },
      process_cpu_seconds_total: { type: "counter", help: "CPU time of this process, user and system." },
      process_resident_memory_bytes: { type: "gauge", help: "Resident memory of this process." },
      process_start_time_seconds: { type: "gauge", help: "When this process started, as a Unix time." },
      nodejs_heap_size_used_bytes: { type: "gauge", help: "JavaScript heap in use." },
    },
    () => {
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed } = process.memoryUsage();
      const loopDelay = quantiles.map((quantile) => ({
        labels: { quantile: String(quantile) },
        value: toDelaySeconds(quantile === 1 ? delays.max : delays.percentile(quantile * 100), delays.count),
      }));
      delays.reset();
      return {
        drover_build_info: [{ labels: info, value: 1 }],
        drover_event_loop_delay_seconds: loopDelay,
        process_cpu_seconds_total: (user + system) / 1e6,
        process_resident_memory_bytes: rss,
        process_start_time_seconds: Math.round((performance.timeOrigin / 1000) * 1000) / 1000,
        nodejs_heap_size_used_bytes: heapUsed,
      };
    },
  );
  return () => void delays.disable();
}

/** Node measures the time between two samples, so a sample without delay is as long as the resolution. */
function toDelaySeconds(nanoseconds: number, samples: number): number {
  return samples === 0 ? 0 : Math.max(0, Math.round(nanoseconds / 1e3) / 1e6 - resolutionMs / 1000);
}
