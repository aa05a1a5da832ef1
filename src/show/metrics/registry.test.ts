import { expect, it } from "vitest";
import { createRegistry } from "./registry.ts";

const setUp = () => {
  const faults: unknown[] = [];
  return { faults, ...createRegistry((fault) => faults.push(fault)) };
};

it("writes counters with their label values escaped", async () => {
  const { addCounter, render } = setUp();
  addCounter("plain_total", "Without labels.");
  const labelled = addCounter("labelled_total", "With two.", ["a", "b"]);
  labelled.add(1, 'say "hi"', "back\\slash");
  labelled.add(2, 'say "hi"', "back\\slash");
  labelled.add(0, "two\nlines", "");
  expect(await render()).toBe(`# HELP plain_total Without labels.
# TYPE plain_total counter
plain_total 0
# HELP labelled_total With two.
# TYPE labelled_total counter
labelled_total{a="say \\"hi\\"",b="back\\\\slash"} 3
labelled_total{a="two\\nlines",b=""} 0
`);
});

it("counts values cumulatively in buckets", async () => {
  const { addHistogram, render } = setUp();
  const plain = addHistogram("plain_seconds", "Without labels.", [1, 5]);
  for (const value of [0.5, 1, 2, 7]) plain.observe(value);
  addHistogram("labelled_seconds", "With one.", [1], ["op"]).observe(3, "a");
  expect(await render()).toBe(`# HELP plain_seconds Without labels.
# TYPE plain_seconds histogram
plain_seconds_bucket{le="1"} 2
plain_seconds_bucket{le="5"} 3
plain_seconds_bucket{le="+Inf"} 4
plain_seconds_sum 10.5
plain_seconds_count 4
# HELP labelled_seconds With one.
# TYPE labelled_seconds histogram
labelled_seconds_bucket{op="a",le="1"} 0
labelled_seconds_bucket{op="a",le="+Inf"} 1
labelled_seconds_sum{op="a"} 3
labelled_seconds_count{op="a"} 1
`);
});

it("reads metrics that belong together once per scrape", async () => {
  const { collect, render } = setUp();
  let reads = 0;
  const families = {
    reads_total: { type: "counter", help: "How many times." },
    by_state: { type: "gauge", help: "By state." },
  } as const;
  collect(families, async () => {
    reads += 1;
    return { reads_total: reads, by_state: [{ labels: { state: "on" }, value: 2 }] };
  });
  await render();
  expect(await render()).toBe(`# HELP reads_total How many times.
# TYPE reads_total counter
reads_total 2
# HELP by_state By state.
# TYPE by_state gauge
by_state{state="on"} 2
`);
});

it("omits metrics that cannot be read, reports the error and writes the rest", async () => {
  const { collect, addCounter, render, faults } = setUp();
  const readError = new Error("away");
  collect({ gone: { type: "gauge", help: "Cannot be known." } }, () => Promise.reject(readError));
  addCounter("there_total", "Can.").add(1);
  expect(await render()).toMatch(/# TYPE gone gauge\n# HELP there_total Can\.\n.*\nthere_total 1\n$/);
  expect(faults).toEqual([readError]);
});

it("refuses a duplicate name and a wrong number of label values", () => {
  const { addCounter } = setUp();
  const counter = addCounter("once_total", "Once.", ["a"]);
  expect(() => addCounter("once_total", "Twice.")).toThrow("once_total");
  expect(() => counter.add(1)).toThrow("[a] got 0 values");
  expect(() => counter.add(1, "x", "y")).toThrow("[a] got 2 values");
});
