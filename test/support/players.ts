/** Creates environments with players for tests of game data: `yield* newGame(config)`. */
import { Effect } from "effect"
import { at, guest, type TestPlayer, type TestResponse, type TestTarget } from "#testing/players"
import { addressOfNode, configure, makeTenants, type Tenant } from "./http-stack.ts"
import { requestTyped, type ResponseTo } from "./response-types.ts"

/** Sends a request as the player: method, path, body and extra headers. */
export type Ask = <const M extends string, const P extends string>(
  method: M,
  path: P,
  body?: unknown,
  headers?: Readonly<Record<string, string>>
) => Effect.Effect<ResponseTo<M, P>>

/** A signed-in guest. */
export interface GamePlayer extends TestPlayer {
  readonly ask: Ask
  /** Sends a GET and returns the body as text. */
  readonly askText: (path: string) => Effect.Effect<string>
  /** The same player with requests to another node. */
  readonly askAt: (url: string) => Ask
}

const requestsOf =
  (url: string, key: string, accessToken: string): Ask =>
  (method, path, body, headers = {}) =>
    requestTyped(url, method, path, {
      headers: { "x-svc-key": key, authorization: `Bearer ${accessToken}`, ...headers },
      body
    })

/** Signs in a new guest. */
export const newGamePlayer = (target: TestTarget): Effect.Effect<GamePlayer> =>
  Effect.map(guest(target), (player) => ({
    ...player,
    ask: requestsOf(target.url, target.publishableKey, player.accessToken),
    askText: (path) =>
      Effect.promise(async () => {
        const headers = {
          "x-svc-key": target.publishableKey,
          authorization: `Bearer ${player.accessToken}`
        }
        return (await fetch(`${target.url}${path}`, { headers })).text()
      }),
    askAt: (url) => requestsOf(url, target.publishableKey, player.accessToken)
  }))

/** Creates an environment with a config and a player; also returns requests with the secret key. */
export const newGame = Effect.fnUntraced(function* (
  document: object,
  which: "development" | "production" = "development"
) {
  const url = yield* addressOfNode
  const tenant: Tenant = (yield* makeTenants)[which]
  yield* configure(tenant, document)
  const { environmentId, publishableKey, secretKey } = tenant
  const target: TestTarget = { url, publishableKey, secretKey }
  const newPlayer = newGamePlayer(target)
  const server: Ask = (method, path, body, headers = {}) =>
    requestTyped(url, method, path, { headers: { "x-svc-key": secretKey, ...headers }, body })
  const player = yield* newPlayer
  return { ...target, environmentId, tenant, newPlayer, player, server }
})

export const codeOf = ({ body }: Pick<TestResponse, "body">): unknown => at(body, "error", "code")

export const detailsOf = ({ body }: Pick<TestResponse, "body">): unknown =>
  at(body, "error", "details")
