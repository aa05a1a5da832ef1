/** Time-ordered ids (UUID version 7): a list sorted by id is sorted by creation. */
export type NewId = () => string;

/** `random` fills the given bytes. Ids created within the same millisecond are ordered too. */
export function createIds(now: () => number, random: (bytes: Uint8Array) => void): NewId {
  let lastMs = 0;
  let counter = 0;
  // Fetch random bytes for 64 ids at a time, because a call to the kernel's generator costs more than the rest of an id.
  const pool = new Uint8Array(16 * 64);
  let offset = pool.length;
  return () => {
    if (offset === pool.length) {
      random(pool);
      offset = 0;
    }
    const bytes = pool.subarray(offset, (offset += 16));
    const ms = Math.max(now(), lastMs);
    // The 12 bits after the time are a counter. It starts low enough not to overflow within a millisecond.
    counter = ms === lastMs ? counter + 1 : ((bytes[6]! & 0x07) << 8) | bytes[7]!;
    lastMs = counter > 0xfff ? ms + 1 : ms;
    counter &= 0xfff;
    for (let i = 5, rest = lastMs; i >= 0; i--, rest = Math.floor(rest / 256)) bytes[i] = rest % 256;
    bytes[6] = 0x70 | (counter >> 8);
    bytes[7] = counter & 0xff;
    bytes[8] = 0x80 | (bytes[8]! & 0x3f);
    return format(bytes);
  };
}

function format(bytes: Uint8Array): string {
  let hex = "";
  for (const byte of bytes) hex += (byte < 16 ? "0" : "") + byte.toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
