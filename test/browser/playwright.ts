// Types for those whose own folder does not have this package.
export type { Browser, BrowserContext, Page } from "playwright-core";
