/**
 * A storm of requests: each endpoint in turn, by lanes that wait for each answer. A lane has a tenant
 * of its own, takes a new one when that is spent, and judges every answer by the definitions.
 */
import { Agent, type IncomingMessage, request } from "node:http"
import { Effect } from "effect"
import { paths } from "#rpc/paths"
import { routeOf } from "#server/http/routes"
import { Chance } from "../simulation/random.ts"
import { type Ask, askOf, isEnding, type Kind } from "./asks.ts"
import { endpointOf, endpoints, mayFail } from "./endpoints.ts"
import type { Findings } from "./findings.ts"
import { type Headers, makeTenant, signUp, type Tenant } from "./tenant.ts"

const lanes = 8
/** Requests before a lane takes a new tenant. */
const tenantLife = 1000
const patienceMillis = 15_000

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

/** Words of the service's insides, which are nobody's business. */
const insides = new RegExp(
  [
    "node_modules|node:internal|\\bat .+\\.[jt]s:\\d",
    'SqlError|PostgresError|syntax error at|relation "|violates ',
    "insert into|select .+ from"
  ].join("|")
)

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What is wrong with an answer; undefined when nothing is. */
const faultOf = (ask: Ask, { body, headers, status }: Answer): string | undefined => {
  const route = routeOf(ask.method, ask.path)
  const endpoint = endpointOf(ask.method, route)
  const name = endpoint === undefined ? "no endpoint" : `${endpoint.method} ${endpoint.path}`
  const type = headers["content-type"] ?? ""
  if (route !== paths.docs && insides.test(body) && !insides.test(String(ask.body) + ask.path))
    return `${name} tells of its insides`
  if (status < 400) {
    if (endpoint === undefined || status === 304) return undefined
    const known = endpoint.successes.get(status)
    if (known === undefined && ask.method !== "OPTIONS") return `${name} answers ${status}`
    if (status >= 300 || ask.method === "HEAD" || ask.method === "OPTIONS") return undefined
    return known?.(parse(body)) === true
      ? undefined
      : `${name} answers ${status} otherwise than it says`
  }
  if (ask.method === "HEAD") return status < 500 ? undefined : `${name} answers ${status}`
  // A sign-in that comes back to nothing is told to people.
  if (status === 400 && type.startsWith("text/html") && route?.endsWith("/callback") === true) {
    return undefined
  }
  if (!type.startsWith("application/json")) return `${name} answers ${status} as "${type}"`
  const sound = mayFail(endpoint, status, parse(body))
  if (status >= 500 && !(status === 503 && sound && body.includes('"mail_unavailable"'))) {
    return `${name} answers ${status}`
  }
  return sound ? undefined : `${name} answers ${status} ${/"code":"[^"]*"/.exec(body)?.[0]}`
}

export interface HttpFigures {
  readonly requests: number
  readonly kinds: Readonly<Record<Kind, number>>
  readonly statuses: ReadonlyMap<number, number>
  /** The endpoint with the fewest requests that were not valid, and their number. */
  readonly leastBad: readonly [name: string, requests: number]
  readonly tenants: number
  /** The slowest answer. */
  readonly worstMillis: number
}

export class HttpFuzzer {
  readonly #url: string
  readonly #seed: number
  readonly #findings: Findings
  readonly #agent = new Agent({ keepAlive: true, maxSockets: lanes })
  readonly #kinds = { valid: 0, nearly: 0, hostile: 0 }
  readonly #statuses = new Map<number, number>()
  readonly #bad = new Map<string, number>(
    endpoints.map(({ method, path }) => [`${method} ${path}`, 0])
  )
  /** A developer who is a member of no tenant. */
  #stranger: Promise<Headers> | undefined
  #tenants = 0
  #worstMillis = 0
  #turn = 0

  constructor(url: string, seed: number, findings: Findings) {
    this.#url = url
    this.#seed = seed
    this.#findings = findings
  }

  /** Sends so many requests more. */
  async send(requests: number): Promise<void> {
    this.#turn += 1
    const each = Math.ceil(requests / lanes)
    await Promise.all(Array.from({ length: lanes }, (_, i) => this.#lane(i, each)))
  }

  get figures(): HttpFigures {
    const leastBad = Array.from(this.#bad).toSorted(([, a], [, b]) => a - b)[0] ?? ["", 0]
    const { hostile, nearly, valid } = this.#kinds
    return {
      requests: valid + nearly + hostile,
      kinds: this.#kinds,
      statuses: this.#statuses,
      leastBad,
      tenants: this.#tenants,
      worstMillis: Math.round(this.#worstMillis)
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #lane(index: number, requests: number): Promise<void> {
    const chance = new Chance(this.#seed, this.#turn * lanes + index)
    const start = Math.floor((endpoints.length / lanes) * index)
    let tenant: Tenant | undefined
    let life = 0
    for (let i = 0; i < requests; i++) {
      if (tenant === undefined || life >= tenantLife) {
        tenant = await this.#newTenant(chance)
        life = 0
      }
      life += 1
      const endpoint = endpoints[(start + i) % endpoints.length]
      if (endpoint === undefined) continue
      const ask = askOf(chance, endpoint, tenant)
      const answer = await this.#send(ask)
      if (answer === undefined) continue
      this.#judge(ask, answer)
      if (answer.status >= 300) continue
      tenant.suggestions.learnFrom(parse(answer.body))
      const reached = endpointOf(ask.method, routeOf(ask.method, ask.path))
      if (reached !== undefined && isEnding(reached)) tenant = undefined
      else if (reached?.path.endsWith("/config") === true && ask.method === "PUT") {
        await Effect.runPromise(tenant.configured)
      }
    }
  }

  async #newTenant(chance: Chance): Promise<Tenant> {
    this.#stranger ??= Effect.runPromise(signUp(this.#url, "stranger@example.com"))
    this.#tenants += 1
    const name = `fuzz-${this.#tenants}`
    return Effect.runPromise(makeTenant(this.#url, await this.#stranger, chance, name))
  }

  #judge(ask: Ask, answer: Answer): void {
    const name = `${ask.endpoint.method} ${ask.endpoint.path}`
    this.#kinds[ask.kind] += 1
    if (ask.kind !== "valid") this.#bad.set(name, (this.#bad.get(name) ?? 0) + 1)
    this.#statuses.set(answer.status, (this.#statuses.get(answer.status) ?? 0) + 1)
    const fault = faultOf(ask, answer)
    if (fault !== undefined) this.#findings.add(fault, shown(ask, answer))
  }

  /** Nothing when there is no answer, which is a finding. */
  async #send(ask: Ask): Promise<Answer | undefined> {
    const begun = performance.now()
    try {
      const answer = await send(this.#url, this.#agent, ask)
      this.#worstMillis = Math.max(this.#worstMillis, performance.now() - begun)
      return answer
    } catch (error) {
      this.#findings.add(`no answer: ${String(error)}`, shown(ask))
      return undefined
    }
  }
}

const shown = ({ body, caller, headers, method, path }: Ask, answer?: Answer): string =>
  JSON.stringify({
    asked: {
      method,
      path: path.slice(0, 300),
      caller,
      headers,
      body: body?.toString().slice(0, 500)
    },
    answered: answer && { status: answer.status, body: answer.body.slice(0, 700) }
  })

const send = (url: string, agent: Agent, { body, headers, method, path }: Ask): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const options = { agent, hostname, port, method, path, headers: { ...headers, ...length } }
    const asked = request(options, (answer) => {
      const chunks: Array<Buffer> = []
      answer.on("data", (chunk: Buffer) => chunks.push(chunk))
      answer.on("error", reject)
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text })
      })
    })
    asked.setTimeout(patienceMillis, () => asked.destroy(new Error("too late")))
    asked.on("error", reject)
    asked.end(body)
  })
