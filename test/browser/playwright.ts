// Re-exports types for directories in which this package is not installed.
export type { Browser, BrowserContext, Page } from "playwright-core";
