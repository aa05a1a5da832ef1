import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { api, describeError, isSignedOut, type Shown } from "../data/client.ts";
import { connectLive, useConnection } from "../data/live.ts";
import { Button } from "../parts/button.tsx";
import { Command } from "../parts/command.tsx";
import { Brand } from "../parts/icon.tsx";
import styles from "./sign-in.module.css";

let connected = false;

/** Exchanges the code of a link, asks who we are, and shows the app to somebody who may see it. */
export function SignIn({ children }: { children: ReactNode }) {
  const [fault, setFault] = useState<Shown | null>(null);
  const [exchanging, setExchanging] = useState(() => location.hash.startsWith("#code="));
  useEffect(() => {
    // a link that is opened where the app is open already changes nothing but the fragment
    const look = (): void => {
      if (location.hash.startsWith("#code=")) setExchanging(true);
    };
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  useEffect(() => {
    if (!exchanging) return;
    const code = location.hash.slice("#code=".length);
    // gone from the address, and so from the history and from what is copied
    history.replaceState(null, "", location.pathname + location.search);
    void api.signIn
      .exchange(code)
      .catch((error: unknown) => setFault(describeError(error)))
      .finally(() => setExchanging(false));
  }, [exchanging]);
  const me = useQuery({ queryKey: ["me"], queryFn: () => api.me(), enabled: !exchanging, staleTime: Infinity });
  const connection = useConnection();
  useEffect(() => {
    if (!me.isSuccess || connected) return;
    connected = true;
    connectLive();
  }, [me.isSuccess]);
  if (isSignedOut(me.error) || (connected && connection === "signed_out")) return <SignedOut fault={fault} />;
  if (me.isSuccess) return children;
  if (me.isError) return <Unreachable fault={describeError(me.error)} retry={() => void me.refetch()} />;
  return null;
}

function SignedOut({ fault }: { fault: Shown | null }) {
  return (
    <main className={styles["page"]}>
      <div className={styles["box"]}>
        <h1 className="row">
          <Brand /> Drover
        </h1>
        {fault ? (
          <p role="alert" className={styles["fault"]}>
            {fault.message} <span className="faint">{fault.code}</span>
          </p>
        ) : (
          <p>You are signed out.</p>
        )}
        <p className="dim">Print a link that signs this browser in, where Drover runs:</p>
        <Command text="drover ui" />
        <p className="faint">It works once, within ten minutes, and lets you do what its token may do.</p>
      </div>
    </main>
  );
}

function Unreachable({ fault, retry }: { fault: Shown; retry: () => void }) {
  return (
    <main className={styles["page"]}>
      <div className={styles["box"]}>
        <h1 className="row">
          <Brand /> Drover
        </h1>
        <p role="alert" className={styles["fault"]}>
          {fault.message}
        </p>
        <p className="dim">{fault.next}</p>
        <Button look="primary" onClick={retry}>
          Try again
        </Button>
      </div>
    </main>
  );
}
