/**
 * Requests of `svc seed` to the service. The secret key finds, bans and checks players, the
 * publishable key acts as one.
 */
import { Effect, Redacted, Schema, Semaphore } from "effect"

import { paths } from "#rpc/paths"
import { exitCodes, Failure } from "./failures.ts"
import { type AppealDecision, type SeededBan } from "./seed-players.ts"
import { call, requestOf, type Route, sendOk } from "./service.ts"
import type { Target } from "./target.ts"

/** The service with both keys of an environment. */
export interface SeedTarget {
  /** Requests with the secret key. */
  readonly operator: Target
  /** Requests of players: here the key is the publishable one. */
  readonly players: Target
}

/** A player of this run, signed in. */
export interface SignedIn {
  readonly id: string
  readonly accessToken: string
  readonly refreshToken: string
}

const quiet = { quiet: true }

/**
 * Pause between sign-ins at the limit, where the service admits one more guest every two seconds.
 */
const limitedPause = "2 seconds"

/** Sends a request whose response says nothing of interest. */
const act = (target: Target, route: Route, body: object, player?: SignedIn) => {
  const token = player === undefined ? {} : { token: player.accessToken }
  return sendOk(target, requestOf(route, { body, ...token }), quiet)
}

// As the operator ------------------------------------------------------------------------------

const ToolReply = Schema.Struct({
  result: Schema.Struct({
    content: Schema.Array(Schema.Struct({ text: Schema.String })),
    isError: Schema.optionalKey(Schema.Boolean)
  })
})

/** Calls a tool of `/mcp`, which reads what has no endpoint for secret keys. */
const callTool = Effect.fnUntraced(function* (target: Target, name: string, args: object) {
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }
  const { result } = yield* call(target, `POST ${paths.mcp}`, ToolReply, { body, ...quiet })
  return { isError: result.isError === true, text: result.content[0]?.text ?? "" }
})

const Found = Schema.fromJsonString(
  Schema.Struct({ players: Schema.Array(Schema.Struct({ displayName: Schema.String })) })
)

const unexpectedTool = ({ url }: Target, text: string) =>
  new Failure({
    exitCode: exitCodes.unreachable,
    code: "unreachable",
    message: `The agent tool of ${url} sent an unexpected response: ${text}`,
    hints: ["Check that the service is at least as new as this CLI."]
  })

/** Whether the environment has a player of this name. */
export const hasPlayer = Effect.fnUntraced(function* ({ operator }: SeedTarget, name: string) {
  const { text } = yield* callTool(operator, "players_search", { q: name, limit: 10 })
  const { players } = yield* Schema.decodeUnknownEffect(Found)(text).pipe(
    Effect.mapError(() => unexpectedTool(operator, text))
  )
  return players.some(({ displayName }) => displayName === name)
})

/** Bans a player. */
export const banPlayer = (
  { operator }: SeedTarget,
  { id }: SignedIn,
  { durationHours, publicNote, reason }: SeededBan
) => {
  const duration = durationHours === undefined ? {} : { durationHours }
  return act(operator, `POST /v1/admin/players/${id}/ban`, { reason, publicNote, ...duration })
}

const Appeals = Schema.Struct({
  appeals: Schema.Array(
    Schema.Struct({ id: Schema.String, player: Schema.Struct({ id: Schema.String }) })
  )
})

/** Decides the open appeal of a player. One that an operator has decided meanwhile stays so. */
export const resolveAppeal = Effect.fnUntraced(function* (
  { operator }: SeedTarget,
  { id }: SignedIn,
  { accept, response }: AppealDecision
) {
  const route = "GET /v1/admin/appeals?status=open&limit=100"
  const { appeals } = yield* call(operator, route, Appeals, quiet)
  const found = appeals.find(({ player }) => player.id === id)
  if (found === undefined) return
  yield* act(operator, `POST /v1/admin/appeals/${found.id}/resolve`, { accept, response })
})

// As a player ----------------------------------------------------------------------------------

const Session = Schema.Struct({
  accessToken: Schema.String,
  refreshToken: Schema.String,
  player: Schema.Struct({ id: Schema.String })
})

/** Runs a sign-in; the run shares one. */
export type Pace = <A, R>(signIn: Effect.Effect<A, Failure, R>) => Effect.Effect<A, Failure, R>

/**
 * Runs sign-ins one after another. Once the service has refused one as too many requests, `onWait` runs,
 * and each further sign-in waits two seconds.
 */
export const makePace = (onWait: Effect.Effect<void>) =>
  Effect.map(Semaphore.make(1), (turn): Pace => {
    let isLimited = false
    const limit = Effect.suspend(() => {
      isLimited = true
      return onWait
    })
    return (signIn) =>
      Effect.suspend(() => (isLimited ? Effect.delay(signIn, limitedPause) : signIn)).pipe(
        Effect.tapError(({ code }) => (code === "rate_limited" ? limit : Effect.void)),
        Effect.retry({ while: ({ code }) => code === "rate_limited" }),
        turn.withPermits(1)
      )
  })

const signIn = Effect.fnUntraced(function* ({ players }: SeedTarget, route: Route, body: object) {
  const { player, ...tokens } = yield* call(players, route, Session, { body, ...quiet })
  const signedIn: SignedIn = { id: player.id, ...tokens }
  return signedIn
})

/** Creates a guest. */
export const createGuest = (target: SeedTarget, displayName: string) =>
  signIn(target, "POST /v1/auth/guest", { displayName })

/** Creates an account. */
export const createAccount = (
  target: SeedTarget,
  account: { readonly email: string; readonly displayName: string; readonly password: string }
) => signIn(target, "POST /v1/auth/email/signup", account)

/** Writes a save. */
export const writeSave = (
  { players }: SeedTarget,
  player: SignedIn,
  { data, key }: { readonly key: string; readonly data: object }
) => act(players, `PUT /v1/saves/${key}`, { data }, player)

/** Reports stats. */
export const reportStats = (
  { players }: SeedTarget,
  player: SignedIn,
  stats: Readonly<Record<string, number>>
) => act(players, "POST /v1/stats", { stats }, player)

/** Appeals against the player's ban. */
export const appeal = ({ players }: SeedTarget, { refreshToken }: SignedIn, message: string) =>
  act(players, "POST /v1/auth/appeal", { refreshToken, message })

/** Deletes the player. */
export const deletePlayer = ({ players }: SeedTarget, player: SignedIn) =>
  act(players, "DELETE /v1/players/me", { refreshToken: player.refreshToken }, player)

/** The publishable key as the key of requests. */
export const asPlayers = (operator: Target, publishableKey: string): Target => ({
  ...operator,
  secretKey: Redacted.make(publishableKey),
  keyFrom: "SVC_PUBLISHABLE_KEY, or dev-keys.json"
})
