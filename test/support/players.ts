/** Players of a node with their game data, as tests ask for it: `yield* newGame(config)`. */
import { Effect } from "effect"
import { type Answer, at, guest, request, type TestPlayer, type TestTarget } from "#testing/players"
import { addressOfNode, configure, makeTenants, type Tenant } from "./http/stack.ts"

/** What a player asks: method, path, body; headers beside its own. */
export type Ask = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>
) => Effect.Effect<Answer>

/** A signed-in guest who asks. */
export interface GamePlayer extends TestPlayer {
  readonly ask: Ask
  /** What a GET answers, as text. */
  readonly askText: (path: string) => Effect.Effect<string>
  /** The same player at another node. */
  readonly askAt: (url: string) => Ask
}

const askerOf =
  (url: string, key: string, accessToken: string): Ask =>
  (method, path, body, headers = {}) =>
    request(`${url}${path}`, {
      method,
      headers: { "x-svc-key": key, authorization: `Bearer ${accessToken}`, ...headers },
      ...(body === undefined ? {} : { body })
    })

/** A new guest of an environment. */
export const newGamePlayer = (target: TestTarget): Effect.Effect<GamePlayer> =>
  Effect.map(guest(target), (player) => ({
    ...player,
    ask: askerOf(target.url, target.publishableKey, player.accessToken),
    askText: (path) =>
      Effect.promise(async () => {
        const headers = {
          "x-svc-key": target.publishableKey,
          authorization: `Bearer ${player.accessToken}`
        }
        return (await fetch(`${target.url}${path}`, { headers })).text()
      }),
    askAt: (url) => askerOf(url, target.publishableKey, player.accessToken)
  }))

/** A fresh environment with a config in force, a player of it, and its server's requests. */
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
  const server = (method: string, path: string) =>
    request(`${url}${path}`, { method, headers: { "x-svc-key": secretKey } })
  const player = yield* newPlayer
  return { ...target, environmentId, tenant, newPlayer, player, server }
})

export const codeOf = ({ body }: Pick<Answer, "body">): unknown => at(body, "error", "code")

export const detailsOf = ({ body }: Pick<Answer, "body">): unknown => at(body, "error", "details")
