/** Values of environment variables: numbers, lists, networks, keys and URLs. */
import { isIP } from "node:net"
import { Result, Schema, SchemaGetter } from "effect"
import { Base64 } from "effect/encoding"
import { developers, turn } from "#rpc/limits"
import { isUnsafeProxy } from "./deployment.ts"
import { metricsTokenMinCharacters } from "./variables.ts"

/** A whole number in a range. */
export const whole = (minimum: number, maximum: number) =>
  Schema.NumberFromString.check(
    Schema.makeFilter((n) => Number.isInteger(n) && n >= minimum && n <= maximum, {
      expected: `a whole number from ${minimum} to ${maximum}`
    })
  )

/** Place of the dashboard: `on` (the port of the service), `off`, or a port of its own. */
export const DashboardPlace = Schema.Union([Schema.Literals(["on", "off"]), whole(1, 65_535)])

/** Items separated by commas, without the blanks around them. */
export const listOf = <Item extends Schema.Constraint>(item: Item) =>
  Schema.String.pipe(
    Schema.decodeTo(Schema.Array(item), {
      decode: SchemaGetter.transform((text: string) =>
        text.split(",").flatMap((part) => (part.trim() === "" ? [] : [part.trim()]))
      ),
      encode: SchemaGetter.transform((items: ReadonlyArray<unknown>) => items.join(","))
    })
  )

/** An address or a network; `10.0.0.1` means `10.0.0.1/32`. */
const Network = Schema.String.pipe(
  Schema.decodeTo(Schema.IpNetworkFromString, {
    decode: SchemaGetter.transform((text) =>
      text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`
    ),
    encode: SchemaGetter.passthrough()
  })
)

export const TrustedNetwork = Network.check(
  Schema.makeFilter((network) => !isUnsafeProxy(network), {
    message:
      "Expected the addresses of load balancers: everybody in so large a part of the internet could " +
      "claim any client address"
  })
)

const isMasterKey = (text: string): boolean =>
  Result.match(Base64.decode(text), {
    onFailure: () => false,
    onSuccess: (bytes) => bytes.length === 32
  })

/** Minimum number of distinct bytes in a key. 32 random bytes have 30, and never fewer than 16. */
const distinctBytesMin = 16

/** Whether a key is a placeholder, such as all zeros, instead of random bytes. */
export const isWeakKey = (key: Uint8Array): boolean => new Set(key).size < distinctBytesMin

export const MasterKey = Schema.String.check(
  Schema.makeFilter(isMasterKey, {
    message: "Expected 32 bytes in base64; make them with: openssl rand -base64 32"
  })
).pipe(Schema.decodeTo(Schema.Uint8ArrayFromBase64))

/** A host name in lower case, without a port. */
export const HostName = Schema.String.check(
  Schema.isPattern(
    /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    {
      message: "Expected a host name in lower case, such as apps.example.net"
    }
  )
)

export const TurnUrl = Schema.String.check(
  Schema.isPattern(/^(?:stuns?:[^\s?]+|turns?:[^\s?]+(?:\?transport=(?:udp|tcp))?)$/i, {
    message: "Expected stun:host:port, or turn:host:port with ?transport=udp or tcp"
  })
)

const portsMax = 64

const portsOf = (text: string): ReadonlyArray<number> | undefined => {
  if (text === "off") return []
  const ports = text.split(",").flatMap((part) => {
    const [first = Number.NaN, last = first] = part.trim().split("-").map(Number)
    const isRange = Number.isInteger(first) && Number.isInteger(last) && first <= last
    const isValid = /^[\d-]+$/.test(part.trim()) && isRange && last <= 65_535
    if (!isValid || last - first >= portsMax) return [Number.NaN]
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
  return ports.length <= portsMax && ports.every((port) => port >= 0) ? ports : undefined
}

/** Ports and ranges of ports: `40500-40503,40600`; 0 is any free port, `off` is none. */
export const Ports = Schema.String.check(
  Schema.makeFilter((text) => portsOf(text) !== undefined, {
    message: `Expected up to ${portsMax} ports, such as 40500-40503, or off`
  })
).pipe(
  Schema.decodeTo(Schema.Array(Schema.Int), {
    decode: SchemaGetter.transform((text: string) => portsOf(text) ?? []),
    encode: SchemaGetter.transform((ports: ReadonlyArray<number>) => ports.join(","))
  })
)

export const IpAddress = Schema.String.check(
  Schema.makeFilter((text) => isIP(text) !== 0, { message: "Expected an IP address" })
)

/** Addresses of name servers, with a port or without: `192.0.2.1,192.0.2.2:5353`. */
export const NameServers = Schema.String.check(
  Schema.makeFilter(
    (text) => text.split(",").every((part) => isIP(part.trim().replace(/:\d{1,5}$/, "")) === 4),
    { message: "Expected IPv4 addresses, with a port or without, such as 192.0.2.1:5353" }
  )
).pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform((text: string) => text.split(",").map((part) => part.trim())),
    encode: SchemaGetter.transform((servers: ReadonlyArray<string>) => servers.join(","))
  })
)

export const SetupToken = Schema.RedactedFromValue(
  Schema.String.check(
    Schema.isBetweenLength(developers.setupTokenMinCharacters, developers.setupTokenMaxCharacters)
  )
)

export const TurnSecret = Schema.String.check(Schema.isMinLength(turn.secretMinCharacters))

export const SmtpUrl = Schema.String.check(
  Schema.makeFilter((text) => /^smtps?:$/.test(URL.parse(text)?.protocol ?? ""), {
    message: "Expected smtp://user:password@host:port or smtps://user:password@host:port"
  })
)

export const MetricsToken = Schema.RedactedFromValue(
  Schema.String.check(Schema.isMinLength(metricsTokenMinCharacters))
)

export const Ratio = Schema.NumberFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** The text of a URL, without a trailing slash. */
export const withoutSlash = (url: URL | undefined): string | undefined =>
  url?.href.replace(/\/+$/, "")

/** Log levels of Effect by those of `SVC_LOG_LEVEL`. */
export const logLevels = {
  debug: "Debug",
  info: "Info",
  warning: "Warn",
  error: "Error"
} as const

export type LogLevel = (typeof logLevels)[keyof typeof logLevels]
