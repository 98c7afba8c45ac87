/** Public addresses that no function may reach: those of this machine, where other services may listen. */
import { networkInterfaces } from "node:os"

export const deniedAddresses = (): ReadonlyArray<string> =>
  Object.values(networkInterfaces())
    .flat()
    .flatMap((address) => (address === undefined ? [] : [address]))
    .map(({ address, family }) => `${address.replace(/%.*$/, "")}/${family === "IPv6" ? 128 : 32}`)
