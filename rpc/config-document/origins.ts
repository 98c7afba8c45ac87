/**
 * Section `web` of the environment config: `allowedOrigins`, the pages that may call with an
 * environment's key. One strict parser reads both the entries and the `Origin` header. It accepts only
 * what a browser sends: scheme, ASCII host and port.
 */
import { Function, Schema } from "effect"
import { list, section, string } from "./fields.ts"
import { configLimits } from "./limits.ts"

const originPattern =
  /^[a-z][a-z0-9+.-]*:\/\/(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::[1-9][0-9]{0,4})?$/i
const wildcardPattern = /^(https?:\/\/)\*\.(.+\..+)$/i

const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

/** Whether a host name is a loopback host. */
export const isLoopback = (hostname: string): boolean => loopback.includes(hostname)

/** Parses an origin; rejects hosts that the URL parser would rewrite (`0x7f.1`, a full-width letter). */
const parse = (origin: string): URL | undefined => {
  const host = originPattern.exec(origin)?.[1]?.toLowerCase()
  const url = URL.parse(origin.toLowerCase())
  return url !== null && url.hostname === host ? url : undefined
}

/** Parses an entry; `wildcard` matches any subdomain of the host, but not the host itself. */
const parseEntry = (entry: string) => {
  const [, scheme, base] = wildcardPattern.exec(entry) ?? []
  const wildcard = scheme !== undefined && base !== undefined
  const url = parse(wildcard ? `${scheme}${base}` : entry)
  return url === undefined ? undefined : { url, wildcard }
}

/** An entry of `web.allowedOrigins`. */
const AllowedOrigin = string("An origin without a path.").check(
  Schema.makeFilter((entry) => parseEntry(entry) !== undefined, {
    message:
      "must be an origin without a path, like https://app.example.com, https://*.example.com," +
      " http://localhost:3000 or capacitor://localhost (international names in their xn-- form)"
  })
)

/** Section `web`. */
export const Web = section("The pages that use the service.", {
  allowedOrigins: list(
    "Origins whose pages may use the service; empty = any. https://*.example.com: any subdomain." +
      " In development, localhost is always allowed.",
    AllowedOrigin,
    configLimits.allowedOriginsMax
  )
})

/** Parsed entries, cached per config because every browser request is checked. */
const entriesOf = Function.memoize((origins: ReadonlyArray<string>) =>
  origins.flatMap((origin) => parseEntry(origin) ?? [])
)

/**
 * Whether a request with this `Origin` header may proceed. The caller allows requests without the
 * header and requests from the service's own origin.
 */
export const originAllowed = (
  { web: { allowedOrigins } }: { readonly web: typeof Web.Type },
  origin: string,
  { development }: { readonly development: boolean }
): boolean => {
  if (allowedOrigins.length === 0) return true
  const url = parse(origin)
  if (url === undefined) return false
  if (development && /^https?:$/.test(url.protocol) && isLoopback(url.hostname)) return true
  return entriesOf(allowedOrigins).some(({ url: { protocol, hostname, port }, wildcard }) => {
    if (protocol !== url.protocol || port !== url.port) return false
    return wildcard ? url.hostname.endsWith(`.${hostname}`) : url.hostname === hostname
  })
}
