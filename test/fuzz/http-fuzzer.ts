/**
 * Sends random requests to each endpoint in turn. Every concurrent worker has its own tenant and checks
 * each response against the API definition.
 */
import { Agent, type IncomingMessage, request } from "node:http"
import { Effect } from "effect"
import { paths } from "#rpc/paths"
import { routeOf } from "#server/http/routes"
import { Chance } from "../simulation/random.ts"
import { type FuzzRequest, randomRequest, isDestructive, type Kind } from "./random-requests.ts"
import { endpointOf, endpoints, isDocumentedError } from "./endpoints.ts"
import type { Findings } from "./findings.ts"
import { type Headers, makeTenant, signUp, type Tenant } from "./tenant.ts"

const concurrency = 8
/** Requests before a worker makes a new tenant. */
const tenantLife = 1000
const timeoutMillis = 15_000
/** How long a response that follows lines is read; the service would write to it for 55 seconds. */
const followedMillis = 500

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

/** Internals that no response may contain: stack traces and SQL. */
const internals = new RegExp(
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

/** They show SQL and errors as examples. */
const documents: ReadonlyArray<string> = [paths.docs, paths.openapi]

/** Why a response is invalid; undefined when it is valid. */
const faultOf = (ask: FuzzRequest, { body, headers, status }: Answer): string | undefined => {
  const route = routeOf(ask.method, ask.path)
  const endpoint = endpointOf(ask.method, route)
  const name = endpoint === undefined ? "no endpoint" : `${endpoint.method} ${endpoint.path}`
  const type = headers["content-type"] ?? ""
  if (
    !documents.some((path) => route?.startsWith(path) === true) &&
    internals.test(body) &&
    !internals.test(String(ask.body) + ask.path)
  )
    return `${name} leaks internals`
  if (status < 400) {
    if (endpoint === undefined || status === 304) return undefined
    if (type.startsWith("application/x-ndjson")) {
      const lines = body.split("\n").filter((line) => line !== "")
      return lines.every((line) => parse(line) !== undefined)
        ? undefined
        : `${name} answers a line that is no JSON`
    }
    const known = endpoint.successes.get(status)
    if (known === undefined && ask.method !== "OPTIONS") return `${name} answers ${status}`
    if (status >= 300 || ask.method === "HEAD" || ask.method === "OPTIONS") return undefined
    return known?.(parse(body)) === true
      ? undefined
      : `${name} answers ${status} with an undocumented body`
  }
  if (ask.method === "HEAD") return status < 500 ? undefined : `${name} answers ${status}`
  // A failed sign-in replies with a page.
  if (status === 400 && type.startsWith("text/html") && route?.endsWith("/callback") === true) {
    return undefined
  }
  // So does a missing page of the documentation.
  if (status === 404 && type.startsWith("text/html") && route?.startsWith(paths.docs) === true) {
    return undefined
  }
  if (!type.startsWith("application/json")) return `${name} answers ${status} as "${type}"`
  const sound = isDocumentedError(endpoint, status, parse(body))
  if (status >= 500 && !(status === 503 && sound && body.includes('"mail_unavailable"'))) {
    return `${name} answers ${status}`
  }
  return sound ? undefined : `${name} answers ${status} ${/"code":"[^"]*"/.exec(body)?.[0]}`
}

export interface HttpFigures {
  readonly requests: number
  readonly kinds: Readonly<Record<Kind, number>>
  readonly statuses: ReadonlyMap<number, number>
  /** The endpoint with the fewest invalid requests, and their number. */
  readonly leastBad: readonly [name: string, requests: number]
  readonly tenants: number
  /** The slowest response, and to what. */
  readonly worst: { readonly millis: number; readonly asked: string }
}

export class HttpFuzzer {
  readonly #url: string
  readonly #seed: number
  readonly #findings: Findings
  readonly #agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  readonly #kinds = { valid: 0, nearly: 0, hostile: 0 }
  readonly #statuses = new Map<number, number>()
  readonly #bad = new Map<string, number>(
    endpoints.map(({ method, path }) => [`${method} ${path}`, 0])
  )
  /** A developer without a project. */
  #stranger: Promise<Headers> | undefined
  #tenants = 0
  #worst = { millis: 0, asked: "" }
  #round = 0

  constructor(url: string, seed: number, findings: Findings) {
    this.#url = url
    this.#seed = seed
    this.#findings = findings
  }

  /** Sends this many more requests. */
  async send(requests: number): Promise<void> {
    this.#round += 1
    const each = Math.ceil(requests / concurrency)
    await Promise.all(Array.from({ length: concurrency }, (_, i) => this.#worker(i, each)))
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
      worst: this.#worst
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #worker(index: number, requests: number): Promise<void> {
    const chance = new Chance(this.#seed, this.#round * concurrency + index)
    const start = Math.floor((endpoints.length / concurrency) * index)
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
      const ask = randomRequest(chance, endpoint, tenant)
      const answer = await this.#send(ask)
      if (answer === undefined) continue
      this.#judge(ask, answer)
      if (answer.status >= 300) continue
      tenant.suggestions.learnFrom(parse(answer.body))
      const reached = endpointOf(ask.method, routeOf(ask.method, ask.path))
      if (reached !== undefined && isDestructive(reached)) tenant = undefined
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

  #judge(ask: FuzzRequest, answer: Answer): void {
    const name = `${ask.endpoint.method} ${ask.endpoint.path}`
    this.#kinds[ask.kind] += 1
    if (ask.kind !== "valid") this.#bad.set(name, (this.#bad.get(name) ?? 0) + 1)
    this.#statuses.set(answer.status, (this.#statuses.get(answer.status) ?? 0) + 1)
    const fault = faultOf(ask, answer)
    if (fault !== undefined) this.#findings.add(fault, describeExchange(ask, answer))
  }

  /** Returns undefined without a response, which is a finding. */
  async #send(ask: FuzzRequest): Promise<Answer | undefined> {
    const begun = performance.now()
    try {
      const answer = await send(this.#url, this.#agent, ask)
      const millis = Math.round(performance.now() - begun)
      if (millis > this.#worst.millis) {
        this.#worst = { millis, asked: `${ask.method} ${ask.path.slice(0, 100)}` }
      }
      return answer
    } catch (error) {
      this.#findings.add(`no answer: ${String(error)}`, describeExchange(ask))
      return undefined
    }
  }
}

const describeExchange = (
  { body, caller, headers, method, path }: FuzzRequest,
  answer?: Answer
): string =>
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

/** Whether a response goes on until its client ends it. */
const isFollowed = (path: string, { headers, statusCode }: IncomingMessage): boolean =>
  statusCode === 200 &&
  headers["content-type"]?.startsWith("application/x-ndjson") === true &&
  new URLSearchParams(path.split("?")[1]).get("follow") === "true"

const send = (
  url: string,
  agent: Agent,
  { body, headers, method, path }: Pick<FuzzRequest, "body" | "headers" | "method" | "path">
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const options = { agent, hostname, port, method, path, headers: { ...headers, ...length } }
    const asked = request(options, (answer) => {
      const chunks: Array<Buffer> = []
      const finish = () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text })
      }
      answer.on("data", (chunk: Buffer) => chunks.push(chunk))
      answer.on("error", reject)
      answer.on("end", finish)
      if (!isFollowed(path, answer)) return
      const cutOff = setTimeout(() => {
        finish()
        answer.destroy()
      }, followedMillis)
      answer.on("close", () => clearTimeout(cutOff))
    })
    asked.setTimeout(timeoutMillis, () => asked.destroy(new Error("no response in time")))
    asked.on("error", (error: NodeJS.ErrnoException) => {
      // The server may close a connection that it has kept as the request comes.
      if (!asked.reusedSocket || error.code !== "ECONNRESET") reject(error)
      else resolve(send(url, agent, { body, headers, method, path }))
    })
    asked.end(body)
  })
