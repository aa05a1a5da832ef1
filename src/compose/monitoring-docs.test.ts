import { readFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { parse } from "yaml";
import { startTestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { freshDatabase } from "../../test/postgres/fresh-database.ts";
import type { CoordinatorOptions } from "../coordinator.ts";

const disposals: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

/** Returns the output of /metrics after some requests. */
async function readMetrics(options: Partial<CoordinatorOptions> = {}): Promise<string> {
  const coordinator = await startTestCoordinator(options);
  disposals.push(coordinator.dispose);
  await coordinator.client.runs.list();
  const headers = { authorization: `Bearer ${coordinator.adminToken}` };
  return (await rawCall(coordinator.url, { path: "/metrics", headers })).text;
}

function listFamilies(text: string): string[] {
  return [...text.matchAll(/^# TYPE (\w+) (?:counter|gauge|histogram)$/gm)].map(([, name]) => name ?? "");
}

const docs = new URL("../../docs/", import.meta.url);
const readDoc = (name: string) => readFileSync(new URL(name, docs), "utf8");

it("exports exactly the metrics that docs/monitoring.md lists, with their types and labels", async () => {
  const documentedMetrics = [...readDoc("monitoring.md").matchAll(/^\| `(\w+)` \| (\w+)[^|]* \| ([^|]*)\|/gm)];
  const text = await readMetrics();
  expect(listFamilies(text).toSorted()).toEqual(documentedMetrics.map(([, name]) => name).toSorted());
  for (const [, name = "", type = "", labels = ""] of documentedMetrics) {
    expect(text).toContain(`# TYPE ${name} ${type}\n`);
    const sample = new RegExp(`^${name}(?:_bucket)?(?:\\{(.*)\\})? `, "m").exec(text);
    if (sample === null) continue;
    const labelNames = [...(sample[1] ?? "").matchAll(/(\w+)="/g)]
      .map(([, label]) => label)
      .filter((item) => item !== "le");
    expect([name, labelNames]).toEqual([name, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label)]);
  }
});

it("exports the same metrics on PostgreSQL, except for the local disk", async () => {
  const { url, drop } = await freshDatabase();
  disposals.push(drop);
  const postgres = listFamilies(await readMetrics({ database: { url, secret: Buffer.alloc(32, 7) } }));
  const sqlite = listFamilies(await readMetrics());
  expect(postgres).toEqual(sqlite.filter((name) => name !== "drover_disk_free_bytes"));
});

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: object;
  targets?: { refId: string; expr: string; datasource: object }[];
}
type Variable = { name: string; type: string; query: string | { query: string } };
type Rule = { alert: string; expr: string };

const dashboard: { panels: Panel[]; templating: { list: Variable[] } } = JSON.parse(
  readDoc("monitoring/grafana-dashboard.json"),
);
const rules: Rule[] = parse(readDoc("monitoring/alerts.yaml")).groups[0].rules;

it("has a dashboard and alerts that use only exported metrics", async () => {
  const exportedMetrics = new Set(listFamilies(await readMetrics()));
  const expressions = [
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...dashboard.templating.list.flatMap(({ query }) => (typeof query === "string" ? [] : [query.query])),
    ...rules.map(({ expr }) => expr),
  ];
  expect(expressions.length).toBeGreaterThan(50);
  for (const expression of expressions) {
    const usedMetrics = findMetrics(expression);
    expect([expression, usedMetrics.filter((name) => !exportedMetrics.has(name))]).toEqual([expression, []]);
    // Prometheus itself provides the metric `up`.
    if (!/^up\b/.test(expression)) expect([expression, usedMetrics.length]).not.toEqual([expression, 0]);
  }
});

/** Removes the suffix that a histogram adds to its name. */
function findMetrics(expression: string): string[] {
  const names = expression.replaceAll(/"[^"]*"/g, "").match(/\b(?:drover|process|nodejs)_\w+/g) ?? [];
  return names.map((name) => name.replace(/_(?:bucket|sum|count)$/, ""));
}

it("has a dashboard that shows every metric, on any Prometheus, without overlapping panels", async () => {
  const { panels, templating } = dashboard;
  const shownMetrics = new Set(panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => findMetrics(expr))));
  expect(listFamilies(await readMetrics()).filter((name) => !shownMetrics.has(name))).toEqual([]);
  expect(templating.list[0]).toMatchObject({ name: "datasource", type: "datasource", query: "prometheus" });
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const occupiedCells = new Set<string>();
  for (const { type, title, datasource, targets = [], gridPos } of panels) {
    const { x, y, w, h } = gridPos;
    expect([title, x + w <= 24]).toEqual([title, true]);
    for (let index = 0; index < w * h; index += 1) {
      const cell = `${x + (index % w)},${y + Math.floor(index / w)}`;
      expect([title, cell, occupiedCells.has(cell)]).toEqual([title, cell, false]);
      occupiedCells.add(cell);
    }
    if (type === "row") continue;
    for (const source of [datasource, ...targets.map((target) => target.datasource)])
      expect(source).toEqual({ type: "prometheus", uid: "${datasource}" });
    expect([title, new Set(targets.map(({ refId }) => refId)).size]).toEqual([title, targets.length]);
  }
});

it("has alerts with a description, and a section on each in docs/operating.md", () => {
  const describedAlerts = new Set(readDoc("operating.md").match(/(?<=`)Drover[A-Z]\w+(?=`)/g));
  expect([...describedAlerts].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  for (const rule of rules)
    expect(rule).toMatchObject({
      labels: { severity: expect.stringMatching(/^(?:critical|warning|info)$/) },
      annotations: { summary: expect.any(String) },
    });
});
