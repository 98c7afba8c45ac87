/** Values of environment variables: numbers, lists, networks, keys and URLs. */
import { isIP } from "node:net"
import { Result, Schema, SchemaGetter } from "effect"
import { Base64 } from "effect/encoding"
import { isUnsafeProxy } from "./deployment.ts"

const setupTokenMinCharacters = 16
const setupTokenMaxCharacters = 128

/** Length below which shared secrets can be guessed by trying. */
export const turnSecretMinCharacters = 16

/** Length that makes the token impossible to guess. */
export const metricsTokenMinCharacters = 16

export const mebibyte = 1024 * 1024

/** Text that fits; the message says what is expected. */
export const textThat = (fits: (text: string) => boolean, expected: string) =>
  Schema.String.check(Schema.makeFilter(fits, { message: `Expected ${expected}` }))

/** Text of a form. */
export const textLike = (form: RegExp, expected: string) =>
  textThat((text) => form.test(text), expected)

export const Secret = Schema.RedactedFromValue(Schema.String)

/** A whole number in a range. */
export const whole = (minimum: number, maximum: number) =>
  Schema.NumberFromString.check(
    Schema.makeFilter((n) => Number.isInteger(n) && n >= minimum && n <= maximum, {
      expected: `a whole number from ${minimum} to ${maximum}`
    })
  )

/** Bytes of a storage, up to a pebibyte. */
export const bytes = whole(0, 2 ** 50)

/** Days, up to a century. */
export const days = whole(0, 36_500)

/** A number of units of this size, such as mebibytes, decoded to the small ones. */
export const inUnits = (size: number, count: ReturnType<typeof whole>) =>
  count.pipe(
    Schema.decodeTo(Schema.Number, {
      decode: SchemaGetter.transform((units: number) => units * size),
      encode: SchemaGetter.transform((small: number) => small / size)
    })
  )

export const OnOff = Schema.Literals(["on", "off"]).transform([true, false])

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

export const MasterKey = Schema.RedactedFromValue(
  textThat(isMasterKey, "32 bytes in base64; make them with: openssl rand -base64 32").pipe(
    Schema.decodeTo(Schema.Uint8ArrayFromBase64)
  )
)

/** A host name in lower case, without a port. */
export const HostName = textLike(
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
  "a host name in lower case, such as apps.example.net"
)

export const TurnUrl = textLike(
  /^(?:stuns?:[^\s?]+|turns?:[^\s?]+(?:\?transport=(?:udp|tcp))?)$/i,
  "stun:host:port, or turn:host:port with ?transport=udp or tcp"
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
export const Ports = textThat(
  (text) => portsOf(text) !== undefined,
  `up to ${portsMax} ports, such as 40500-40503, or off`
).pipe(
  Schema.decodeTo(Schema.Array(Schema.Int), {
    decode: SchemaGetter.transform((text: string) => portsOf(text) ?? []),
    encode: SchemaGetter.transform((ports: ReadonlyArray<number>) => ports.join(","))
  })
)

export const IpAddress = textThat((text) => isIP(text) !== 0, "an IP address")

/** Addresses of name servers, with a port or without: `192.0.2.1,192.0.2.2:5353`. */
export const NameServers = textThat(
  (text) => text.split(",").every((part) => isIP(part.trim().replace(/:\d{1,5}$/, "")) === 4),
  "IPv4 addresses, with a port or without, such as 192.0.2.1:5353"
).pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform((text: string) => text.split(",").map((part) => part.trim())),
    encode: SchemaGetter.transform((servers: ReadonlyArray<string>) => servers.join(","))
  })
)

export const SetupToken = Schema.RedactedFromValue(
  Schema.String.check(Schema.isBetweenLength(setupTokenMinCharacters, setupTokenMaxCharacters))
)

export const TurnSecret = Schema.RedactedFromValue(
  Schema.String.check(Schema.isMinLength(turnSecretMinCharacters))
)

export const SmtpUrl = Schema.RedactedFromValue(
  textThat(
    (text) => /^smtps?:$/.test(URL.parse(text)?.protocol ?? ""),
    "smtp://user:password@host:port or smtps://user:password@host:port"
  )
)

export const MetricsToken = Schema.RedactedFromValue(
  Schema.String.check(Schema.isMinLength(metricsTokenMinCharacters))
)

export const Ratio = Schema.NumberFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** The text of a URL, without a trailing slash. */
export const withoutSlash = (url: URL | undefined): string | undefined =>
  url?.href.replace(/\/+$/, "")

export const LogLevel = Schema.Literals(["debug", "info", "warning", "error"]).transform([
  "Debug",
  "Info",
  "Warn",
  "Error"
])

export const HttpUrl = Schema.URLFromString.check(
  Schema.makeFilter(({ protocol }) => /^https?:$/.test(protocol), {
    message: "Expected a URL with http or https"
  })
)
