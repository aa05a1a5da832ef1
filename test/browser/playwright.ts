// For those whose own folder does not have this package.
export { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
