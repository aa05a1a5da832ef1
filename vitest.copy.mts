import { defineConfig } from "vitest/config";
export default defineConfig({ define: { DROVER_VERSION: JSON.stringify("x") }, test: { pool: "forks", testTimeout: 120000, hookTimeout: 60000, maxWorkers: 2, globalSetup: ["test/postgres/setup.ts"], include: ["src/record/copy/**/*.test.ts", "src/record/backup.test.ts", "src/record/postgres/audit.test.ts"] } });
