/**
 * Requests of `svc seed` to the service. The secret key finds, bans and checks players, the
 * publishable key acts as one.
 */
import { Effect, Redacted, Schema, Semaphore } from "effect"
import { HttpClientRequest } from "effect/http"
import { paths } from "#rpc/paths"
import { exitCodes, Failure } from "./failures.ts"
import { type AppealDecision, type SeededBan } from "./seed-players.ts"
import { read, sendOk } from "./service.ts"
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

const post = (path: string, body: object) =>
  HttpClientRequest.post(path).pipe(HttpClientRequest.bodyJsonUnsafe(body))

const as = ({ accessToken }: SignedIn) => HttpClientRequest.bearerToken(accessToken)

// As the operator ------------------------------------------------------------------------------

const ToolAnswer = Schema.Struct({
  result: Schema.Struct({
    content: Schema.Array(Schema.Struct({ text: Schema.String })),
    isError: Schema.optionalKey(Schema.Boolean)
  })
})

/** Calls a tool of `/mcp`, which reads what has no endpoint for secret keys. */
const callTool = Effect.fnUntraced(function* (target: Target, name: string, args: object) {
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }
  const answer = yield* sendOk(target, post(paths.mcp, message), quiet)
  const { result } = yield* read(target.url, ToolAnswer, answer)
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
  const ban = { reason, publicNote, ...duration }
  return sendOk(operator, post(`/v1/admin/players/${id}/ban`, ban), quiet)
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
  const request = HttpClientRequest.get("/v1/admin/appeals?status=open&limit=100")
  const answer = yield* sendOk(operator, request, quiet)
  const { appeals } = yield* read(operator.url, Appeals, answer)
  const found = appeals.find(({ player }) => player.id === id)
  if (found === undefined) return
  const path = `/v1/admin/appeals/${found.id}/resolve`
  yield* sendOk(operator, post(path, { accept, response }), quiet)
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

/** Signs a player in, and checks that it belongs to the environment of the secret key. */
const signIn = Effect.fnUntraced(function* (
  target: SeedTarget,
  request: HttpClientRequest.HttpClientRequest
) {
  const answer = yield* sendOk(target.players, request, quiet)
  const { player, ...tokens } = yield* read(target.players.url, Session, answer)
  const signedIn: SignedIn = { id: player.id, ...tokens }
  return signedIn
})

/** Creates a guest. */
export const createGuest = (target: SeedTarget, displayName: string) =>
  signIn(target, post("/v1/auth/guest", { displayName }))

/** Creates an account. */
export const createAccount = (
  target: SeedTarget,
  account: { readonly email: string; readonly displayName: string; readonly password: string }
) => signIn(target, post("/v1/auth/email/signup", account))

/** Writes a save. */
export const writeSave = (
  { players }: SeedTarget,
  player: SignedIn,
  save: { readonly key: string; readonly data: object }
) => {
  const request = HttpClientRequest.put(`/v1/saves/${save.key}`).pipe(
    HttpClientRequest.bodyJsonUnsafe({ data: save.data }),
    as(player)
  )
  return sendOk(players, request, quiet)
}

/** Reports stats. */
export const reportStats = (
  { players }: SeedTarget,
  player: SignedIn,
  stats: Readonly<Record<string, number>>
) => sendOk(players, post("/v1/stats", { stats }).pipe(as(player)), quiet)

/** Appeals against the player's ban. */
export const appeal = ({ players }: SeedTarget, { refreshToken }: SignedIn, message: string) =>
  sendOk(players, post("/v1/auth/appeal", { refreshToken, message }), quiet)

/** Deletes the player. */
export const deletePlayer = ({ players }: SeedTarget, player: SignedIn) => {
  const request = HttpClientRequest.delete("/v1/players/me").pipe(
    HttpClientRequest.bodyJsonUnsafe({ refreshToken: player.refreshToken }),
    as(player)
  )
  return sendOk(players, request, quiet)
}

/** The publishable key as the key of requests. */
export const asPlayers = (operator: Target, publishableKey: string): Target => ({
  ...operator,
  secretKey: Redacted.make(publishableKey),
  keyFrom: "SVC_PUBLISHABLE_KEY, or dev-keys.json"
})
