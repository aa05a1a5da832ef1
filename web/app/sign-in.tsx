import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { api, describeError, isSignedOut, type ErrorText } from "../data/client.ts";
import { connectLive, useConnection } from "../data/live.ts";
import { Button } from "../parts/button.tsx";
import { Command } from "../parts/command.tsx";
import { Brand } from "../parts/icon.tsx";
import styles from "./sign-in.module.css";

let isConnected = false;

/** Exchanges the code in a sign-in link for a session, then shows the app to a signed-in user. */
export function SignIn({ children }: { children: ReactNode }) {
  const [signInError, setSignInError] = useState<ErrorText | null>(null);
  const [isExchanging, setIsExchanging] = useState(() => location.hash.startsWith("#code="));
  useEffect(() => {
    // Opening a sign-in link in a tab that already shows the app changes only the fragment.
    const checkHash = (): void => {
      if (location.hash.startsWith("#code=")) setIsExchanging(true);
    };
    addEventListener("hashchange", checkHash);
    return () => removeEventListener("hashchange", checkHash);
  }, []);
  useEffect(() => {
    if (!isExchanging) return;
    const code = location.hash.slice("#code=".length);
    // Remove the code from the URL so that it stays out of the history and of copied links.
    history.replaceState(null, "", location.pathname + location.search);
    void api.signIn
      .exchange(code)
      .catch((error: unknown) => setSignInError(describeError(error)))
      .finally(() => setIsExchanging(false));
  }, [isExchanging]);
  const me = useQuery({ queryKey: ["me"], queryFn: () => api.me(), enabled: !isExchanging, staleTime: Infinity });
  const connection = useConnection();
  useEffect(() => {
    if (!me.isSuccess || isConnected) return;
    isConnected = true;
    connectLive();
  }, [me.isSuccess]);
  if (isSignedOut(me.error) || (isConnected && connection === "signed_out")) return <SignedOut error={signInError} />;
  if (me.isSuccess) return children;
  if (me.isError) return <Unreachable error={describeError(me.error)} retry={() => void me.refetch()} />;
  return null;
}

function SignedOut({ error }: { error: ErrorText | null }) {
  return (
    <main className={styles["page"]}>
      <div className={styles["box"]}>
        <h1 className="row">
          <Brand /> Drover
        </h1>
        {error ? (
          <p role="alert" className={styles["error"]}>
            {error.message} <span className="faint">{error.code}</span>
          </p>
        ) : (
          <p>You are signed out.</p>
        )}
        <p className="dim">To sign in, print a link on the machine where Drover runs:</p>
        <Command text="drover ui" />
        <p className="faint">
          The link works once, expires after ten minutes, and grants the permissions of its token.
        </p>
      </div>
    </main>
  );
}

function Unreachable({ error, retry }: { error: ErrorText; retry: () => void }) {
  return (
    <main className={styles["page"]}>
      <div className={styles["box"]}>
        <h1 className="row">
          <Brand /> Drover
        </h1>
        <p role="alert" className={styles["error"]}>
          {error.message}
        </p>
        <p className="dim">{error.next}</p>
        <Button variant="primary" onClick={retry}>
          Try again
        </Button>
      </div>
    </main>
  );
}
