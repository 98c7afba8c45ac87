/** Requests: as the definitions want them, with one thing wrong, or as no client would send them. */
import type { Chance } from "../simulation/random.ts"
import type { Endpoint } from "./endpoints.ts"
import { deep, text } from "./hostile.ts"
import { write } from "./json.ts"
import { grown } from "./shapes.ts"
import type { Headers, Tenant } from "./tenant.ts"

export type Kind = "valid" | "nearly" | "hostile"

/** A request as it will stand on the wire. */
export interface Ask {
  readonly kind: Kind
  /** The endpoint that it was made for; it may reach another, or none. */
  readonly endpoint: Endpoint
  readonly caller: string
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Headers
  readonly body: string | Buffer | undefined
}

/** Who may call, by the access of an endpoint. */
const rightful: Readonly<Record<string, ReadonlyArray<string>>> = {
  anyone: ["nobody"],
  publishable: ["publishable"],
  link: ["nobody"],
  maybePlayer: ["publishable", "player"],
  player: ["player", "bob", "member"],
  evenBanned: ["player", "bob", "member", "bannedPlayer"],
  secret: ["secret"],
  developer: ["developer"],
  member: ["developer"]
}

/** These end what all others of a tenant stand on, so they are seldom asked for by those who may. */
const endings: ReadonlySet<string> = new Set([
  "DELETE /v1/projects/:projectId",
  "DELETE /v1/projects/:projectId/keys/:keyId",
  "POST /v1/developers/logout",
  "POST /v1/developers/me/password"
])

export const isEnding = ({ method, path }: Endpoint): boolean => endings.has(`${method} ${path}`)

const callerOf = (chance: Chance, endpoint: Endpoint, { callers }: Tenant): string => {
  const { access } = endpoint
  const among = chance.happens(isEnding(endpoint) ? 0.05 : 0.85)
    ? (rightful[access] ?? [])
    : Object.keys(callers)
  return chance.pick(among) ?? "nobody"
}

/** The place of a request where something is wrong. */
type Wrong = "body" | "path" | "query" | "header" | undefined

const wrongOf = (chance: Chance, { body, parameters }: Endpoint): Wrong => {
  const places: Array<Wrong> = body === undefined ? [] : ["body", "body", "body"]
  for (const it of parameters) places.push(it.in)
  return chance.pick(places) ?? chance.pick(["query", "header"])
}

const pathOf = (chance: Chance, endpoint: Endpoint, tenant: Tenant, wrong: boolean): string => {
  const names = endpoint.path.match(/:[A-Za-z]+/g) ?? []
  const spoilt = wrong ? chance.pick(names) : undefined
  return endpoint.path.replace(/:([A-Za-z]+)/g, (found: string, name: string) => {
    const suggested = tenant.suggestions.suggest(name) ?? "x"
    return encodeURIComponent((found === spoilt ? text(chance) : suggested).toWellFormed())
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
    pairs.push([name, text(chance).toWellFormed()])
  }
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`
}

/** What HTTP lets stand in a header. */
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
  if (wrong) own[chance.pick(wrongHeaders) ?? "origin"] = headerText(text(chance))
  return own
}

const bodyOf = (
  chance: Chance,
  { body, contentType }: Endpoint,
  { suggestions }: Tenant,
  wrong: boolean
) => {
  if (body === undefined) return undefined
  const json = write(grown(chance, body, suggestions.suggest, wrong))
  if (contentType === "application/json") return json
  const fields: unknown = JSON.parse(write(grown(chance, body, suggestions.suggest, false)))
  const pairs = Object.entries(Object(fields)).map(([name, value]) => [name, String(value)])
  return String(new URLSearchParams([...pairs, ...(wrong ? [["state", text(chance)]] : [])]))
}

/** A request for an endpoint; `wrong`: with one thing that is not as it should be. */
const made = (chance: Chance, endpoint: Endpoint, tenant: Tenant, wrong: boolean): Ask => {
  const where = wrong ? wrongOf(chance, endpoint) : undefined
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

const strangers = [
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
  "/docs",
  "/openapi.json",
  "/v1/config/schema.json",
  "/healthz?x=1",
  "/%2e%2e/%2e%2e/etc/passwd"
] as const

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "QUERY"]

const hugeBytes = 1_600_000
const deepLevels = 10_000

const fullBody = (ask: Ask): string =>
  typeof ask.body === "string" && ask.body !== "" ? ask.body : '{"a":1}'

const asJson = (ask: Ask, body: string | Buffer): Ask => ({
  ...ask,
  method: ask.method === "GET" ? "POST" : ask.method,
  headers: { "content-type": "application/json", ...ask.headers },
  body
})

const withHeader = (ask: Ask, name: string, value: string): Ask => ({
  ...ask,
  headers: { ...ask.headers, [name]: value }
})

/** Each makes of a request one that nobody means well with. */
const attacks: ReadonlyArray<(chance: Chance, ask: Ask) => Ask> = [
  (chance, ask) => asJson(ask, deep(chance, deepLevels)),
  (chance, ask) => asJson(ask, `{"data":${deep(chance, deepLevels)}}`),
  (chance, ask) => asJson(ask, fullBody(ask).slice(0, chance.integer(0, fullBody(ask).length - 1))),
  (chance, ask) => asJson(ask, text(chance)),
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
  (chance, ask) => ({ ...ask, path: chance.pick(strangers) ?? "/" }),
  (chance, ask) => ({ ...ask, path: ask.path.split("?")[0] + (chance.pick(queries) ?? "") }),
  (chance, ask) => ({ ...ask, path: `${ask.path.split("?")[0]}/${chance.pick(segments)}` }),
  (chance, ask) => {
    const parts = ask.path.split("/")
    parts[chance.integer(1, parts.length - 1)] = chance.pick(segments) ?? ""
    return { ...ask, path: parts.join("/") }
  },
  (chance, ask) => withHeader(ask, "x-svc-key", headerText(`pk_${text(chance)}`)),
  (chance, ask) => withHeader(ask, "authorization", `Bearer ${headerText(text(chance))}`),
  (_, ask) => withHeader(ask, "authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."),
  (_, ask) => withHeader(ask, "authorization", `Bearer ${"a".repeat(9000)}.b.c`),
  (chance, ask) => withHeader(ask, "origin", headerText(text(chance))),
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

/** So large that it has to be refused unread; it is dear to send, so it is rare. */
const huge = (ask: Ask): Ask => asJson(ask, `{"data":"${"x".repeat(hugeBytes)}"}`)

const hugeShare = 0.01

const kindOf = (chance: Chance): Kind => {
  const die = chance.fraction()
  if (die < 0.35) return "valid"
  return die < 0.8 ? "nearly" : "hostile"
}

/** One request for an endpoint, whatever chance makes of it. */
export const askOf = (chance: Chance, endpoint: Endpoint, tenant: Tenant): Ask => {
  const kind = kindOf(chance)
  const ask = made(chance, endpoint, tenant, kind === "nearly")
  if (kind !== "hostile") return ask
  const attack = chance.happens(hugeShare)
    ? huge
    : (of: Ask) => chance.pick(attacks)?.(chance, of) ?? of
  return { ...attack(ask), kind }
}
