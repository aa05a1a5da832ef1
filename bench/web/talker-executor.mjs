// Streams long text word by word, like a model.
export const executor = {
  name: "talker",
  can: { resume: false, fork: false, ask: false, input: false },
  async run({ parameters: { words = 3000, pause_ms = 20 } }, { partial, emit, signal }) {
    let sentText = "";
    for (let offset = 0; offset < words && !signal.aborted; offset += 3) {
      const text = offset % 60 === 0 ? `\n\n- **point ${offset / 60}**: ` : "three more words ";
      sentText += text;
      partial({ kind: "assistant", text });
      await new Promise((resolve) => setTimeout(resolve, pause_ms));
    }
    await emit({ type: "assistant", text: sentText });
    return { status: "completed", exit_code: null, text: sentText };
  },
};
