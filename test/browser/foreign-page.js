// Served from another origin: tries to read and write with the session of the browser that opens it.
globalThis.attack = async (address) => {
  const attempt = (work) =>
    work.then(
      (value) => `got ${String(value)}`,
      () => "refused",
    );
  const sendRequest = (init, path = "/runs") =>
    fetch(address + path, { credentials: "include", ...init }).then(async (answer) =>
      answer.type === "opaque" ? Promise.reject(new Error("opaque")) : answer.text(),
    );
  const element = (tag, path) =>
    new Promise((resolve, reject) => {
      const one = Object.assign(document.createElement(tag), { src: address + path, onload: resolve, onerror: reject });
      document.body.append(one);
    });
  const stream = new Promise((resolve, reject) => {
    const source = new EventSource(`${address}/events`, { withCredentials: true });
    source.addEventListener("message", resolve);
    source.addEventListener("open", resolve);
    source.addEventListener("error", () => (source.close(), reject(new Error("refused"))));
  });
  const frame = Object.assign(document.createElement("iframe"), { src: `${address}/ui/` });
  const framed = new Promise((resolve) => frame.addEventListener("load", resolve));
  document.body.append(frame);
  await framed;
  const body = JSON.stringify({ agent_name: "echo", parameters: { message: "x" } });
  const json = { "content-type": "application/json" };
  const popup = window.open(`${address}/ui/`);
  const inside = new Promise((resolve, reject) => {
    // Until the page has loaded, the window shows an empty page of this origin.
    const timer = setInterval(() => {
      try {
        const popupText = popup?.document.body?.innerText ?? "";
        if (popupText !== "") resolve(popupText);
      } catch (error) {
        clearInterval(timer);
        reject(error);
      }
    }, 20);
  });
  const results = {
    read: await attempt(sendRequest({})),
    "read with a simple header": await attempt(sendRequest({ headers: { accept: "application/json" } }, "/tokens")),
    stream: await attempt(stream),
    image: await attempt(element("img", "/runs")),
    script: await attempt(element("script", "/runs")),
    write: await attempt(sendRequest({ method: "POST", headers: json, body })),
    "write as text": (await attempt(sendRequest({ method: "POST", mode: "no-cors", body }))).replace(
      "refused",
      "opaque or refused",
    ),
    delete: await attempt(sendRequest({ method: "DELETE" }, "/agents/echo")),
    "look into a window": await attempt(inside),
  };
  popup?.close();
  return results;
};

globalThis.submitForm = (address, enctype) => {
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action: `${address}/runs`, enctype });
  // Encoded as text/plain, this is a JSON body.
  const name = '{"agent_name":"echo","parameters":{"message":"';
  form.append(Object.assign(document.createElement("input"), { name, value: 'x"}}' }));
  document.body.append(form);
  form.submit();
};
