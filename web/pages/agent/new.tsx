import { useNavigate } from "@tanstack/react-router";
import { Editor } from "./editor.tsx";

export function Page() {
  const navigate = useNavigate();
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>New agent</h1>
      <Editor
        agent={null}
        onDone={(name) => void navigate(name === null ? { to: "/agents" } : { to: "/agents/$name", params: { name } })}
      />
    </>
  );
}
