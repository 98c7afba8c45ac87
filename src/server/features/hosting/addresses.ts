/**
 * Addresses of hosted apps. Each app has its own origin: `<slug>.<domain>` for production,
 * `<slug>--dev.<domain>` for development, and `v<version>--` before either for one version.
 */
import type { EnvironmentName } from "#rpc/auth"

/** Base URL and hosting domain. Without a hosting domain, apps have only custom domains. */
export interface AddressOptions {
  readonly domain: string | undefined
  readonly baseUrl: string
}

/** Parsed label of a host name below the hosting domain. */
export interface Label {
  readonly slug: string
  readonly name: EnvironmentName
  /** Version in the label; undefined for the live version. */
  readonly version: number | undefined
}

const developmentSuffix = "--dev"

const labelForm = /^(?:v([1-9]\d{0,8})--)?([a-z0-9]+(?:-[a-z0-9]+)*)(--dev)?$/

/** Parses the label of a host name; slugs contain no two hyphens in a row. */
export const parseLabel = (label: string): Label | undefined => {
  const [, version, slug, development] = labelForm.exec(label) ?? []
  if (slug === undefined) return undefined
  return {
    slug,
    name: development === undefined ? "production" : "development",
    version: version === undefined ? undefined : Number(version)
  }
}

/** The host of a `Host` header or an origin: lower case, without port and trailing dot. */
export const hostOf = (header: string): string => {
  const lower = header.toLowerCase()
  // Each request asks: most need neither expression.
  const name = lower.includes(":") ? lower.replace(/:\d*$/, "") : lower
  return name.endsWith(".") ? name.slice(0, -1) : name
}

/** The label of an environment in host names and paths: the slug, or `<slug>--dev`. */
export const labelOf = (slug: string, name: EnvironmentName): string =>
  name === "production" ? slug : `${slug}${developmentSuffix}`

/** Writes the addresses of apps. They have the scheme and the port of the base URL. */
export const makeAddresses = ({ baseUrl, domain }: AddressOptions) => {
  const { port, protocol } = new URL(baseUrl)
  const at = (host: string): string => `${protocol}//${host}${port === "" ? "" : `:${port}`}`
  return {
    /** The origin of a host. */
    at,
    /** The label of a host below the hosting domain; undefined for any other host. */
    labelIn: (host: string): string | undefined =>
      domain !== undefined && host.endsWith(`.${domain}`)
        ? host.slice(0, -domain.length - 1)
        : undefined,
    /** The address of the live version. */
    live: (slug: string, name: EnvironmentName): string | undefined =>
      domain === undefined ? undefined : `${at(`${labelOf(slug, name)}.${domain}`)}/`,
    /** The address of one version. */
    version: (slug: string, name: EnvironmentName, version: number | string): string | null =>
      domain === undefined ? null : `${at(`v${version}--${labelOf(slug, name)}.${domain}`)}/`
  }
}
