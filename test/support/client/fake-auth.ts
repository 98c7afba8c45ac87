/** The session endpoints of a service, in memory: rotating tokens, and scripted responses. */

const json = (status: number, body: object): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json" }
  })

/** An error response of the service. */
export const refusal = (status: number, code: string, details?: object): Response =>
  json(status, { error: { code, message: code, ...(details === undefined ? {} : { details }) } })

const playerOf = (number: number, displayName: string) => ({
  id: `pl_${String(number).padStart(26, "0")}`,
  displayName,
  isGuest: true,
  createdAt: "2026-11-20T21:00:00.000Z",
  identities: [{ provider: "guest" }],
  emailVerified: false
})

type Route = (body: Readonly<Record<string, unknown>>, token: string | null) => Response

/** A response that a test withholds. */
export interface Held {
  /** The request has arrived. */
  readonly asked: Promise<void>
  readonly release: () => void
}

export class FakeAuth {
  /** `METHOD /path` of each request, in order. */
  readonly requests: Array<string> = []
  /** Their headers. */
  readonly headers: Array<Headers> = []
  readonly #refresh = new Map<string, ReturnType<typeof playerOf>>()
  /** Used refresh tokens. The race window of this service never ends. */
  readonly #used = new Set<string>()
  readonly #instead = new Map<string, Array<() => Response | Promise<Response>>>()
  #issued = 0
  #guests = 0
  #accepted = ""

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const { pathname } = new URL(String(input instanceof Request ? input.url : input))
    const route = `${init?.method ?? "GET"} ${pathname}`
    this.requests.push(route)
    this.headers.push(new Headers(init?.headers))
    const instead = this.#instead.get(route)?.shift()
    if (instead !== undefined) return instead()
    const text = await new Response(init?.body ?? null).text()
    const token = new Headers(init?.headers).get("authorization")
    const answer = this.#routes[route]
    return answer === undefined
      ? refusal(404, "not_found")
      : answer(text === "" ? {} : JSON.parse(text), token)
  }

  /** The number of requests to a route. */
  count(route: string): number {
    return this.requests.filter((request) => request === route).length
  }

  /** Scripts the next response of a route. */
  instead(route: string, answer: () => Response | Promise<Response>): void {
    this.#instead.set(route, [...(this.#instead.get(route) ?? []), answer])
  }

  /** Withholds the next response of a route until its release. */
  hold(route: string, answer: () => Response): Held {
    const asked = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    this.instead(route, () => {
      asked.resolve()
      return released.promise.then(answer)
    })
    return { asked: asked.promise, release: () => released.resolve() }
  }

  /** Expires every access token issued so far. */
  expireAccess(): void {
    this.#accepted = ""
  }

  /** Issues a session, as for another tab. */
  issue(player = playerOf(1, "Ada")) {
    const number = String(++this.#issued)
    const refreshToken = `refresh-${number}`
    const accessToken = `access-${number}`
    this.#refresh.set(refreshToken, player)
    this.#accepted = `Bearer ${accessToken}`
    return { player, accessToken, expiresIn: 900, refreshToken }
  }

  readonly #routes: Readonly<Record<string, Route>> = {
    "POST /v1/auth/guest": ({ displayName = "Guest" }) =>
      json(200, this.issue(playerOf(++this.#guests, String(displayName).trim()))),
    "POST /v1/auth/refresh": ({ refreshToken }) => {
      const token = String(refreshToken)
      if (this.#used.has(token)) return refusal(409, "refresh_race")
      const player = this.#refresh.get(token)
      if (player === undefined) return refusal(401, "session_revoked")
      this.#refresh.delete(token)
      this.#used.add(token)
      return json(200, this.issue(player))
    },
    "POST /v1/auth/logout": ({ refreshToken }) => {
      this.#refresh.delete(String(refreshToken))
      return json(200, {})
    },
    "GET /v1/players/me": (_body, token) =>
      token === this.#accepted
        ? json(200, { player: Array.from(this.#refresh.values()).at(-1) })
        : refusal(401, "token_expired"),
    "PATCH /v1/players/me": ({ displayName }, token) => {
      const last = Array.from(this.#refresh).at(-1)
      if (token !== this.#accepted || last === undefined) return refusal(401, "token_expired")
      const player = { ...last[1], displayName: String(displayName).trim() }
      this.#refresh.set(last[0], player)
      return json(200, { player })
    }
  }
}
