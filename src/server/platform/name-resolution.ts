/**
 * Resolution of host names for outgoing requests. A look-up by the system occupies one of the four
 * threads that hashing and files share, and cannot be cancelled. So a slow name server of one
 * developer would stop them all. The service therefore resolves names that developers choose by DNS
 * queries without a thread.
 */
import { type LookupAddress, lookup, Resolver } from "node:dns"

/** Finds all addresses of a host name; the signal ends the search. */
export type Resolve = (
  hostname: string,
  callback: (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void,
  signal: AbortSignal
) => void

/** Resolves a name by the system, with its hosts file and search domains. */
export const resolveBySystem: Resolve = (hostname, callback) =>
  // With an error, Node passes no addresses at all, whatever its type says.
  lookup(hostname, { all: true }, (error, addresses) => callback(error, error ? [] : addresses))

/** Milliseconds until a query is repeated, and how often it is sent. */
const queries = { timeout: 1000, tries: 3 } as const

/** Time for which IPv4 addresses wait for the IPv6 ones (RFC 8305, section 3). */
const resolutionDelayMillis = 50

/**
 * Resolves a name by queries to name servers, those of the system by default. It queries both kinds
 * of addresses at once.
 */
export const resolveByDns =
  (servers?: ReadonlyArray<string>): Resolve =>
  (hostname, callback, signal) => {
    const resolver = new Resolver(queries)
    if (servers !== undefined) resolver.setServers(servers)
    const found: Array<LookupAddress> = []
    let pending = 2
    let failure: Error | null = null
    let delay: NodeJS.Timeout | undefined
    const cancel = () => resolver.cancel()
    const finish = () => {
      clearTimeout(delay)
      signal.removeEventListener("abort", cancel)
      callback(found.length > 0 ? null : failure, found)
    }
    const receive = (family: 4 | 6) => (error: Error | null, addresses: ReadonlyArray<string>) => {
      pending -= 1
      failure ??= error
      if (error === null) found.push(...addresses.map((address) => ({ address, family })))
      if (pending === 0) finish()
      // The other query then ends with an error.
      else if (family === 4 && found.length > 0) delay = setTimeout(cancel, resolutionDelayMillis)
    }
    signal.addEventListener("abort", cancel, { once: true })
    resolver.resolve4(hostname, receive(4))
    resolver.resolve6(hostname, receive(6))
  }
