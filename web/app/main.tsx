import "@fontsource-variable/geist/index.css";
import "@fontsource-variable/geist-mono/index.css";
import "../styles/base.css";
import "../styles/tokens.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { createRoot } from "react-dom/client";
import { queryClient } from "../data/queries.ts";
import { Toasts } from "../parts/toasts.tsx";
import { router } from "./router.tsx";
import { SignIn } from "./sign-in.tsx";

// Radix adds inline styles, which the content security policy allows only with this response's nonce.
setNonce(document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? "");

createRoot(document.querySelector("#app")!).render(
  <QueryClientProvider client={queryClient}>
    <SignIn>
      <RouterProvider router={router} />
    </SignIn>
    <Toasts />
  </QueryClientProvider>,
);
