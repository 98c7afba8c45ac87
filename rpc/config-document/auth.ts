/**
 * Section `auth` of the environment config: external sign-in providers, and `auth.redirectUrls`,
 * the addresses that email links and OAuth may return to. The service sends sign-in codes to those
 * addresses. So it rejects a URL that is not in its normal form, instead of repairing it.
 */
import { Schema } from "effect"
import { list, optional, section, string, toggle } from "./fields.ts"
import { configLimits } from "./limits.ts"
import { isLoopback } from "./origins.ts"

/** Printable ASCII except `#` (starts a fragment) and `\` (parsers read it as a slash). */
const urlCharacters = /^[!"$-[\]-~]+$/
const hiddenSeparator = /%(?:00|25|2f|5c)/i
/** Schemes that run code or read local data. */
const unsafeScheme = /^(?:about|blob|data|file|javascript|vbscript):/

/** Parses a URL without its query; `undefined` unless the text is in normal form. */
const parse = (text: string): URL | undefined => {
  const [base = ""] = text.split("?", 1)
  const url = urlCharacters.test(text) ? URL.parse(base) : null
  if (url === null || url.username !== "" || url.password !== "") return undefined
  if (unsafeScheme.test(url.protocol) || hiddenSeparator.test(url.pathname)) return undefined
  return url.href === base || url.href === `${base}/` ? url : undefined
}

/** Parses an entry; `prefix` means that it allows every path that begins with the URL's path. */
const parseEntry = (entry: string) => {
  const prefix = entry.endsWith("*")
  const base = prefix ? entry.slice(0, -1) : entry
  const url = base.includes("*") ? undefined : parse(base)
  if (url === undefined || !/^[^:]+:\//.test(base)) return undefined
  // Without a slash before the star, it would extend the host or the query.
  return prefix && (url.href !== base || !url.pathname.startsWith("/"))
    ? undefined
    : { url, prefix }
}

const RedirectUrl = string("A return address.").check(
  Schema.makeFilter((entry) => parseEntry(entry) !== undefined, {
    message:
      "must be a URL in its normal form, without user name and fragment, like" +
      " https://example.com/signed-in, https://example.com/app/* or myapp://signed-in"
  })
)

const provider = (title: string, credentials: string) =>
  optional(
    section(`Sign-in with ${title}.`, {
      enabled: toggle(`Needs ${credentials}, entered in the dashboard.`)
    })
  )

const Providers = section(
  "External sign-in; credentials are never stored in this file.",
  {
    google: provider("Google", "the OAuth client"),
    discord: provider("Discord", "the OAuth client"),
    apple: provider("Apple", "Services ID, Team ID, Key ID and private key"),
    x: provider("X", "the app's Client ID and Secret")
  },
  "provider"
)

/** Section `auth`. */
export const Auth = section("Sign-in.", {
  redirectUrls: list(
    "Return addresses for email links and OAuth: an exact URL (any query), or a trailing * for a" +
      " path prefix. In development, localhost is always allowed.",
    RedirectUrl,
    configLimits.redirectUrlsMax
  ),
  providers: optional(Providers)
})

/** Whether sign-in may return to this URL. The caller checks URLs of the service itself. */
export const redirectUrlAllowed = (
  { auth: { redirectUrls } }: { readonly auth: Pick<typeof Auth.Type, "redirectUrls"> },
  redirectUrl: string,
  { development }: { readonly development: boolean }
): boolean => {
  const url = parse(redirectUrl)
  if (url === undefined) return false
  if (development && /^https?:$/.test(url.protocol) && isLoopback(url.hostname)) return true
  return redirectUrls.some((text) => {
    const entry = parseEntry(text)
    if (entry?.url.protocol !== url.protocol || entry.url.host !== url.host) return false
    return entry.prefix
      ? url.pathname.startsWith(entry.url.pathname)
      : url.pathname === entry.url.pathname
  })
}
