/**
 * Safety of a deployment's settings. A setting that nobody can intend stops the start; a setting
 * that somebody may intend causes a warning.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** Addresses that the operator's own networks use (RFC 1918, 3927, 4193, 4291, 6598). */
const ownNetworks = [
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "::1/128",
  "fc00::/7",
  "fe80::/10"
].map(IpNetwork.fromStringUnsafe)

const loopbackNetworks = ["127.0.0.0/8", "::1/128"].map(IpNetwork.fromStringUnsafe)

/** Host names that no public resolver knows (RFC 6761, 6762, 8375, 9476). */
const ownNames = /(?:^|\.)(?:localhost|local|test|internal|home\.arpa)$/

const ipOf = (hostname: string) =>
  Result.getOrUndefined(NetAddress.ipFromString(hostname.replace(/^\[(.*)\]$/, "$1")))

/** Whether players anywhere can reach a host of this name. */
export const isPublicHost = (hostname: string): boolean => {
  const ip = ipOf(hostname)
  if (ip !== undefined) return !ownNetworks.some((network) => IpNetwork.contains(network, ip))
  return hostname.includes(".") && !ownNames.test(hostname)
}

const isLoopbackHost = (hostname: string): boolean => {
  const ip = ipOf(hostname)
  if (ip === undefined) return hostname === "localhost"
  return loopbackNetworks.some((network) => IpNetwork.contains(network, ip))
}

type Family = readonly [ipv4: number, ipv6: number]

/** The widest network on the internet that one provider publishes for its proxies is about this wide. */
const widestPublic: Family = [12, 28]
/** A wider network of one's own holds more than a load balancer. */
const widestOwn: Family = [16, 48]

const isWider = (network: IpNetwork.IpNetwork, [ipv4, ipv6]: Family): boolean =>
  network.prefixLength < (IpNetwork.isIpv4Network(network) ? ipv4 : ipv6)

const isWithin = (outer: ReadonlyArray<IpNetwork.IpNetwork>, network: IpNetwork.IpNetwork) =>
  outer.some((each) => IpNetwork.containsNetwork(each, network))

/** Whether trusting this network lets most of the internet choose its own address. */
export const isUnsafeProxy = (network: IpNetwork.IpNetwork): boolean =>
  !isWithin(ownNetworks, network) && isWider(network, widestPublic)

/** Returns warnings about trusted proxies, for the start. */
export const proxyWarnings = (
  networks: ReadonlyArray<IpNetwork.IpNetwork>
): ReadonlyArray<string> => {
  const wide = networks.filter((network) =>
    isWithin(ownNetworks, network)
      ? isWider(network, widestOwn) && !isWithin(loopbackNetworks, network)
      : IpNetwork.addressCount(network) > 1n
  )
  if (wide.length === 0) return []
  return [
    `SVC_TRUSTED_PROXIES trusts ${wide.map(IpNetwork.format).join(", ")}: each machine there can claim ` +
      "any client address, evade the throttles and forge the addresses in the audit log. Name the " +
      "addresses of your load balancers only. For the published networks of a CDN, let a firewall admit " +
      "nobody else."
  ]
}

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

/** Returns the problem of a database URL; undefined if there is none. */
export const databaseUrlIssue = (text: string, production: boolean): string | undefined => {
  const url = URL.parse(text)
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    return "Expected postgres://user:password@host/database"
  }
  const mode = url.searchParams.get("sslmode")
  if (mode !== null && !sslModes.includes(mode)) {
    return `Expected sslmode to be one of ${sslModes.join(", ")}`
  }
  const host = url.searchParams.get("host") ?? decodeURIComponent(url.hostname)
  const isHere = host === "" || host.startsWith("/") || isLoopbackHost(host)
  if (!production || isHere || mode !== null) return undefined
  return (
    "names another host without sslmode, so passwords and data of players would cross the network in " +
    "plain text. Add ?sslmode=require, which also verifies the certificate, or ?sslmode=disable if " +
    "nobody else can read that network"
  )
}

interface StorageSettings {
  readonly DATABASE_URL?: unknown
  readonly SMTP_URL?: unknown
  readonly SVC_BLOBS_URL?: string
  readonly SVC_FEATURES: ReadonlyArray<string>
  readonly SVC_FUNCTIONS_PROCESSES: number
  readonly SVC_FUNCTIONS_SNAPSHOT_SECONDS: number
  readonly SVC_RUNNER_HOST?: string
}

/** Returns a warning for each setting that loses data, in production. */
export const lossWarnings = (env: StorageSettings): ReadonlyArray<string> => {
  const has = (feature: string) => env.SVC_FEATURES.includes(feature)
  const isCluster = env.SVC_RUNNER_HOST !== undefined
  const losses: ReadonlyArray<readonly [when: boolean, warning: string]> = [
    [
      env.DATABASE_URL === undefined,
      "DATABASE_URL is not set: all data is in the embedded Postgres of SVC_DATA_DIR, which is for " +
        "development and is lost with this directory. Set DATABASE_URL to a Postgres of your own."
    ],
    [
      env.SVC_BLOBS_URL === undefined && has("hosting"),
      "SVC_BLOBS_URL is not set: files of hosted apps are in SVC_DATA_DIR of this runner alone and are lost " +
        "with it. Set SVC_BLOBS_URL to a bucket, or to folder if all runners share a volume there."
    ],
    [
      isCluster && env.SVC_FUNCTIONS_PROCESSES > 0 && env.SVC_FUNCTIONS_SNAPSHOT_SECONDS === 0,
      "SVC_FUNCTIONS_SNAPSHOT_SECONDS is 0: what functions store is in SVC_DATA_DIR of one runner and is " +
        "lost with it. Set it to 10, unless all runners share this directory."
    ],
    [
      env.SMTP_URL === undefined && has("emailLogin"),
      "SMTP_URL is not set: mails to players are not sent, so a lost password is lost for good. Set " +
        "SMTP_URL to a mail server."
    ]
  ]
  return losses.filter(([when]) => when).map(([, warning]) => warning)
}

/** Returns warnings about an unsafe address for players, in production. */
export const baseUrlWarnings = (given: URL | undefined, used: string): ReadonlyArray<string> => {
  if (given === undefined) {
    return [
      "SVC_BASE_URL is not set: links in mails, returns of sign-in providers and the issuer of tokens " +
        `are at ${used}. Set it to the address that players use.`
    ]
  }
  if (given.protocol === "https:" || !isPublicHost(given.hostname)) return []
  return [
    "SVC_BASE_URL is not https: passwords and tokens of players cross the network in plain text. " +
      "Put a proxy with TLS in front, and set the https address."
  ]
}
