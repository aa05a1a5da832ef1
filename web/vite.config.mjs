import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  base: "/ui/",
  plugins: [react()],
  worker: { format: "es" },
  build: {
    target: "es2023",
    emptyOutDir: true,
    // no data: URLs, which the policy of the page allows for images only
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
