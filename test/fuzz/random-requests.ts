/** Random requests: valid, with one invalid part, or such as no client sends. */
import type { Chance } from "../simulation/random.ts"
import type { Endpoint } from "./endpoints.ts"
import { deeplyNested, hostileText } from "./hostile-values.ts"
import { stringify } from "./json.ts"
import { generateValue } from "./schema-values.ts"
import type { Headers, Tenant } from "./tenant.ts"

export type Kind = "valid" | "nearly" | "hostile"

/** A request as it is sent. */
export interface FuzzRequest {
  readonly kind: Kind
  /** The endpoint that it was generated for. A hostile path may reach another, or none. */
  readonly endpoint: Endpoint
  readonly caller: string
  readonly method: string
  /** Includes the query. */
  readonly path: string
  readonly headers: Headers
  readonly body: string | Buffer | undefined
}

/** The callers that the access of an endpoint admits. */
const entitledCallers: Readonly<Record<string, ReadonlyArray<string>>> = {
  anyone: ["nobody"],
  publishable: ["publishable"],
  link: ["nobody"],
  maybePlayer: ["publishable", "player"],
  maybePlayerEvenBanned: ["publishable", "player", "bannedPlayer"],
  player: ["player", "bob", "member"],
  evenBanned: ["player", "bob", "member", "bannedPlayer"],
  secret: ["secret"],
  developer: ["developer"],
  member: ["developer"]
}

/** Endpoints that delete what other requests of the tenant need, so entitled callers use them rarely. */
const destructive: ReadonlySet<string> = new Set([
  "DELETE /v1/projects/:projectId",
  "DELETE /v1/projects/:projectId/keys/:keyId",
  "POST /v1/developers/logout",
  "POST /v1/developers/me/password"
])

export const isDestructive = ({ method, path }: Endpoint): boolean =>
  destructive.has(`${method} ${path}`)

const callerOf = (chance: Chance, endpoint: Endpoint, { callers }: Tenant): string => {
  const { access } = endpoint
  const among = chance.happens(isDestructive(endpoint) ? 0.05 : 0.85)
    ? (entitledCallers[access] ?? [])
    : Object.keys(callers)
  return chance.pick(among) ?? "nobody"
}

/** The part of a request that is invalid. */
type InvalidPart = "body" | "path" | "query" | "header" | undefined

const invalidPartOf = (chance: Chance, { body, parameters }: Endpoint): InvalidPart => {
  const places: Array<InvalidPart> = body === undefined ? [] : ["body", "body", "body"]
  for (const it of parameters) places.push(it.in)
  return chance.pick(places) ?? chance.pick(["query", "header"])
}

const pathOf = (chance: Chance, endpoint: Endpoint, tenant: Tenant, wrong: boolean): string => {
  const names = endpoint.path.match(/:[A-Za-z]+/g) ?? []
  const spoilt = wrong ? chance.pick(names) : undefined
  return endpoint.path.replace(/:([A-Za-z0-9]+)/g, (found: string, name: string) => {
    const suggested = tenant.suggestions.suggest(name) ?? "x"
    return encodeURIComponent((found === spoilt ? hostileText(chance) : suggested).toWellFormed())
  })
}

const queryOf = (chance: Chance, endpoint: Endpoint, tenant: Tenant, wrong: boolean): string => {
  const fields = endpoint.parameters.filter((it) => it.in === "query")
  const pairs = fields.flatMap(({ name, shape }): ReadonlyArray<[string, string]> => {
    if (chance.happens(0.4)) return []
    const found = chance.pick(shape.enum ?? []) ?? tenant.suggestions.suggest(name) ?? "a"
    return [[name, String(found)]]
  })
  if (endpoint.access === "link") pairs.push(["key", tenant.publishableKey])
  if (wrong) {
    const name = chance.pick(fields)?.name ?? "extra"
    pairs.push([name, hostileText(chance).toWellFormed()])
  }
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`
}

/** Replaces characters that HTTP forbids in a header. */
const headerText = (value: string): string => value.replace(/[^\t\x20-\x7e\x80-\xff]/g, "?")

const wrongHeaders = [
  "x-svc-key",
  "authorization",
  "origin",
  "x-forwarded-for",
  "x-request-id",
  "content-type",
  "idempotency-key",
  "if-match",
  "if-none-match",
  "accept",
  "user-agent",
  "traceparent",
  "cookie"
] as const

const headersOf = (chance: Chance, endpoint: Endpoint, tenant: Tenant, wrong: boolean) => {
  const own: Record<string, string> = {}
  for (const { in: where, name } of endpoint.parameters) {
    if (where === "header" && chance.happens(0.5)) {
      own[name] = tenant.suggestions.suggest(name) ?? "once"
    }
  }
  if (wrong) own[chance.pick(wrongHeaders) ?? "origin"] = headerText(hostileText(chance))
  return own
}

const bodyOf = (
  chance: Chance,
  { body, contentType }: Endpoint,
  { suggestions }: Tenant,
  wrong: boolean
) => {
  if (body === undefined) return undefined
  const json = stringify(generateValue(chance, body, suggestions.suggest, wrong))
  if (contentType === "application/json") return json
  const fields: unknown = JSON.parse(
    stringify(generateValue(chance, body, suggestions.suggest, false))
  )
  const pairs = Object.entries(Object(fields)).map(([name, value]) => [name, String(value)])
  return String(new URLSearchParams([...pairs, ...(wrong ? [["state", hostileText(chance)]] : [])]))
}

/** A request for an endpoint; with `wrong`, one of its parts is invalid. */
const makeRequest = (
  chance: Chance,
  endpoint: Endpoint,
  tenant: Tenant,
  wrong: boolean
): FuzzRequest => {
  const where = wrong ? invalidPartOf(chance, endpoint) : undefined
  const caller = callerOf(chance, endpoint, tenant)
  const body = bodyOf(chance, endpoint, tenant, where === "body")
  return {
    kind: wrong ? "nearly" : "valid",
    endpoint,
    caller,
    method: endpoint.method,
    path:
      pathOf(chance, endpoint, tenant, where === "path") +
      queryOf(chance, endpoint, tenant, where === "query"),
    headers: {
      ...(body === undefined ? {} : { "content-type": endpoint.contentType }),
      ...tenant.callers[caller],
      ...headersOf(chance, endpoint, tenant, where === "header")
    },
    body
  }
}

const contentTypes = [
  "text/plain",
  "text/html; charset=utf-7",
  "application/json; charset=utf-16",
  "application/json;;;=",
  "application/x-www-form-urlencoded",
  "multipart/form-data",
  "multipart/form-data; boundary=x",
  "application/octet-stream",
  "application/msgpack",
  "*/*",
  ""
] as const

const segments = [
  "%zz",
  "%",
  "%00",
  "%2e%2e%2f",
  "..",
  ".",
  "%c0%ae",
  "%ff%fe",
  "%ed%a0%80",
  "%2F",
  "%5c",
  ":playerId",
  "*",
  "a;b=c",
  "x".repeat(1100),
  "%61".repeat(400)
] as const

const queries = [
  "?__proto__=1&constructor=2",
  "?limit[]=1&limit[a]=2",
  "?%ff=%fe",
  "?&&&==&",
  "?limit=1&limit=2&limit=3",
  "?limit=1e3&cursor=%00",
  "?limit=Infinity",
  `?${"a=b&".repeat(2000)}`,
  `?q=${"%F0%9F%98%80".repeat(300)}`,
  "?key=pk_&key=sk_"
] as const

const unroutedPaths = [
  "/",
  "//",
  "/v1",
  "/v1/",
  "/v1/players/me/",
  "/V1/players/me",
  "/v1//players/me",
  "/v1/./players/me",
  "/v1/realtime",
  "/v1/rpc",
  "/.env",
  "/-/verify?token=x",
  "/-/reset?token=%00",
  "/dev/mail",
  "/dev/voice",
  "/dev/voice.js",
  "/docs",
  "/docs/api",
  "/docs/guides/rooms",
  "/docs/../package.json",
  "/asyncapi.json",
  "/openapi.json",
  "/sdk/client.js",
  "/sdk/client.js.map",
  "/v1/config/schema.json",
  "/healthz?x=1",
  "/%2e%2e/%2e%2e/etc/passwd"
] as const

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "QUERY"]

const oversizedBytes = 1_600_000
const deepLevels = 10_000

const fullBody = (ask: FuzzRequest): string =>
  typeof ask.body === "string" && ask.body !== "" ? ask.body : '{"a":1}'

const asJson = (ask: FuzzRequest, body: string | Buffer): FuzzRequest => ({
  ...ask,
  method: ask.method === "GET" ? "POST" : ask.method,
  headers: { "content-type": "application/json", ...ask.headers },
  body
})

const withHeader = (ask: FuzzRequest, name: string, value: string): FuzzRequest => ({
  ...ask,
  headers: { ...ask.headers, [name]: value }
})

/** Each turns a request into a hostile one. */
const attacks: ReadonlyArray<(chance: Chance, ask: FuzzRequest) => FuzzRequest> = [
  (chance, ask) => asJson(ask, deeplyNested(chance, deepLevels)),
  (chance, ask) => asJson(ask, `{"data":${deeplyNested(chance, deepLevels)}}`),
  (chance, ask) => asJson(ask, fullBody(ask).slice(0, chance.integer(0, fullBody(ask).length - 1))),
  (chance, ask) => asJson(ask, hostileText(chance)),
  (_, ask) => asJson(ask, "null"),
  (_, ask) => asJson(ask, `[${fullBody(ask)}]`),
  (_, ask) => asJson(ask, `\ufeff${fullBody(ask)}`),
  (_, ask) => asJson(ask, Buffer.from(fullBody(ask), "utf16le")),
  (_, ask) =>
    asJson(
      ask,
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xc0, 0x80]), Buffer.from('"}')])
    ),
  (chance, ask) => asJson(ask, Buffer.from(chance.bytes(chance.integer(1, 300)))),
  (chance, ask) =>
    withHeader(asJson(ask, fullBody(ask)), "content-type", chance.pick(contentTypes) ?? ""),
  (chance, ask) =>
    withHeader(
      asJson(ask, fullBody(ask)),
      "content-encoding",
      chance.pick(["gzip", "br", "x"]) ?? ""
    ),
  (chance, ask) => ({ ...ask, method: chance.pick(methods) ?? "GET" }),
  (chance, ask) => ({ ...ask, path: chance.pick(unroutedPaths) ?? "/" }),
  (chance, ask) => ({ ...ask, path: ask.path.split("?")[0] + (chance.pick(queries) ?? "") }),
  (chance, ask) => ({ ...ask, path: `${ask.path.split("?")[0]}/${chance.pick(segments)}` }),
  (chance, ask) => {
    const parts = ask.path.split("/")
    parts[chance.integer(1, parts.length - 1)] = chance.pick(segments) ?? ""
    return { ...ask, path: parts.join("/") }
  },
  (chance, ask) => withHeader(ask, "x-svc-key", headerText(`pk_${hostileText(chance)}`)),
  (chance, ask) => withHeader(ask, "authorization", `Bearer ${headerText(hostileText(chance))}`),
  (_, ask) => withHeader(ask, "authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."),
  (_, ask) => withHeader(ask, "authorization", `Bearer ${"a".repeat(9000)}.b.c`),
  (chance, ask) => withHeader(ask, "origin", headerText(hostileText(chance))),
  (_, ask) => withHeader(ask, "idempotency-key", "x".repeat(129)),
  (_, ask) => withHeader(ask, "cookie", "a=b; ".repeat(4000)),
  (_, ask) => ({
    ...ask,
    headers: {
      ...ask.headers,
      ...Object.fromEntries(Array.from({ length: 150 }, (__, i) => [`x-${i}`, "1"]))
    }
  })
]

/** Above the body limit, so the service must refuse it unread. Rare, since sending it is slow. */
const oversized = (ask: FuzzRequest): FuzzRequest =>
  asJson(ask, `{"data":"${"x".repeat(oversizedBytes)}"}`)

const oversizedShare = 0.01

const kindOf = (chance: Chance): Kind => {
  const die = chance.fraction()
  if (die < 0.35) return "valid"
  return die < 0.8 ? "nearly" : "hostile"
}

/** A random request for an endpoint. */
export const randomRequest = (chance: Chance, endpoint: Endpoint, tenant: Tenant): FuzzRequest => {
  const kind = kindOf(chance)
  const ask = makeRequest(chance, endpoint, tenant, kind === "nearly")
  if (kind !== "hostile") return ask
  const attack = chance.happens(oversizedShare)
    ? oversized
    : (of: FuzzRequest) => chance.pick(attacks)?.(chance, of) ?? of
  return { ...attack(ask), kind }
}
