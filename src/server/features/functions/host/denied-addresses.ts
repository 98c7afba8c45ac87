/**
 * Addresses that workerd treats as public and functions must not reach. They are the addresses of this
 * machine, where other services may listen, and those outside the internet. IPv6 addresses that embed
 * an IPv4 one (NAT64, 6to4) lead to private addresses where the network translates them.
 */
import { networkInterfaces } from "node:os"
import { notPublic } from "#server/platform/outgoing"

/** All of IPv6 except its global unicast space, 2000::/3. */
const notUnicast = ["::/3", "4000::/2", "8000::/1"]

const ofThisMachine = (): ReadonlyArray<string> =>
  Object.values(networkInterfaces())
    .flat()
    .flatMap((address) => (address === undefined ? [] : [address]))
    .map(({ address, family }) => `${address.replace(/%.*$/, "")}/${family === "IPv6" ? 128 : 32}`)

export const deniedAddresses = (): ReadonlyArray<string> => [
  ...ofThisMachine(),
  ...notPublic,
  ...notUnicast
]
