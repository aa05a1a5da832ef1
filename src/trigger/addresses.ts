import { BlockList, isIP } from "node:net";
import { RequestError } from "../model/errors.ts";

/** Decides where webhooks may be sent, by the IP address of the connection and not by the host name. */
export interface AddressRules {
  /** Returns the problem of a URL that cannot be registered, or null. Does not resolve its host. */
  checkUrl(text: string): string | null;
  /** `hostname` is the one in the URL, for names that the operator allows. */
  mayConnect(hostname: string, address: string): boolean;
}

/** Ranges that the IANA registry of special-purpose addresses lists as not globally reachable, and multicast. */
const blockedV4 = `
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
  192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
  240.0.0.0/4`;
/** For IPv6, everything except global unicast is blocked. That covers mapped, compatible, NAT64, ULA, link-local and multicast addresses. */
const globalV6 = "2000::/3";
const blockedV6 = "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20";

export function createAddressRules(allow: readonly string[]): AddressRules {
  const blocked = createBlockList(`${blockedV4} ${blockedV6}`);
  const global = createBlockList(globalV6);
  const { names, addresses } = parseAllowed(allow);

  const isPublic = (address: string): boolean => {
    const family = isIP(address);
    if (family === 4) return !blocked.check(address, "ipv4");
    return family === 6 && global.check(address, "ipv6") && !blocked.check(address, "ipv6");
  };
  const mayConnect = (hostname: string, address: string): boolean => {
    const family = isIP(address);
    if (family === 0) return false;
    return (
      isPublic(address) ||
      names.has(normalizeName(hostname)) ||
      addresses.check(address, family === 4 ? "ipv4" : "ipv6")
    );
  };
  return {
    mayConnect,
    checkUrl(text) {
      if (!URL.canParse(text)) return "is not a URL";
      const { protocol, username, password, hostname } = new URL(text);
      if (protocol !== "https:" && protocol !== "http:") return "must start with https:// or http://";
      if (username !== "" || password !== "") return "must have no user name or password in it";
      if (hostname === "") return "has no host";
      const literalAddress = getLiteralAddress(hostname);
      return literalAddress === null || mayConnect(hostname, literalAddress) ? null : notAllowedMessage;
    },
  };
}

export const notAllowedMessage =
  "is not a public address; the operator can allow it in drover.yaml with webhooks: {allow: [HOST]}";

/** Returns the host of a URL if it is an IP address, or null if it is a name. `URL` has already normalized the address. */
export function getLiteralAddress(hostname: string): string | null {
  const address = hostname.replace(/^\[(.*)\]$/, "$1");
  return isIP(address) === 0 ? null : address;
}

function createBlockList(ranges: string): BlockList {
  const list = new BlockList();
  for (const range of ranges.trim().split(/\s+/)) addRange(list, range);
  return list;
}

function addRange(list: BlockList, range: string): boolean {
  const [, address = "", bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
  const family = isIP(address);
  const maxBits = family === 4 ? 32 : 128;
  if (family === 0 || Number(bits ?? maxBits) > maxBits) return false;
  list.addSubnet(address, Number(bits ?? maxBits), family === 4 ? "ipv4" : "ipv6");
  return true;
}

function parseAllowed(entries: readonly string[]): { names: Set<string>; addresses: BlockList } {
  const names = new Set<string>();
  const addresses = new BlockList();
  for (const entry of entries) {
    if (addRange(addresses, entry)) continue;
    if (!/^(?!\d+(?:\.\d+)*$)[a-z0-9](?:[a-z0-9.-]{0,252})$/i.test(entry))
      throw new RequestError({
        code: "DROVER-CFG-004",
        field: "webhooks.allow",
        message: `webhooks.allow: ${entry} is neither a host name nor an address or range.`,
        next: "Use a name such as hooks.internal, an address such as 10.0.0.7, or a range such as 10.0.0.0/8.",
      });
    names.add(normalizeName(entry));
  }
  return { names, addresses };
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
