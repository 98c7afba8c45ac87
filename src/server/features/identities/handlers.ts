/** How a player signs in, shown and taken away (spec sections 3 and 4.1, decisions 3.2.8). */
import { DateTime, Effect, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentPlayer, type PlayerCaller } from "#rpc/auth"
import { InvalidRefreshToken, NotFound } from "#rpc/errors/codes"
import { type LinkedIdentity, Method } from "#rpc/identities"
import { IdentityRepository, type IdentityRow } from "#sql/identities"
import { makeTransaction } from "#server/platform/database"
import { ProviderGrants } from "../oauth/grants.ts"
import { playerView } from "../players/handlers.ts"
import { Sessions } from "../sessions/service.ts"

const isMethod = Schema.is(Method)

/** An identity as its player sees it. */
export const identityView = (row: IdentityRow): LinkedIdentity => ({
  provider: row.provider,
  ...(row.email === null ? {} : { email: row.email, emailVerified: row.emailVerified }),
  ...(row.username === null ? {} : { username: row.username }),
  linkedAt: DateTime.formatIso(row.linkedAt)
})

/** The player without the identity, signed in nowhere but on the device of the refresh token. */
const makeUnlink = Effect.gen(function* () {
  const grants = yield* ProviderGrants
  const identities = yield* IdentityRepository
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction

  /** The device that stays: whoever asks holds the current token of a session of its own. */
  const keptSession = Effect.fnUntraced(function* (caller: PlayerCaller, refreshToken: string) {
    const { playerId, sessionId } = yield* sessions
      .holder(caller.environmentId, refreshToken)
      .pipe(Effect.catchTag("session_revoked", () => Effect.fail(new InvalidRefreshToken())))
    return playerId === caller.playerId ? sessionId : yield* new InvalidRefreshToken()
  })

  const unlink = Effect.fnUntraced(function* (
    caller: PlayerCaller,
    provider: string,
    refreshToken: string
  ) {
    // Of two devices at once the second finds itself signed out.
    yield* identities.hold(caller)
    const kept = yield* keptSession(caller, refreshToken)
    if (!isMethod(provider)) return yield* new NotFound()
    const given = yield* grants.collect(caller.environmentId, caller.playerId, provider)
    const left = yield* identities.unlink({ ...caller, provider })
    if (Option.isNone(left)) return yield* new NotFound()
    yield* sessions.signOut(caller.environmentId, caller.playerId, kept)
    return { player: playerView(left.value), given }
  })

  return Effect.fnUntraced(function* (...of: Parameters<typeof unlink>) {
    const { given, player } = yield* transaction(unlink(...of))
    yield* grants.revoke(given)
    return { player }
  })
})

/** `GET /v1/players/me/identities` and `DELETE /v1/players/me/identities/:provider`. */
export const IdentitiesHttp = HttpApiBuilder.group(
  Api,
  "identities",
  Effect.fn(function* (handlers) {
    const identities = yield* IdentityRepository
    const unlink = yield* makeUnlink
    return handlers.handleAll({
      list: Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        const rows = yield* identities.ofPlayer({ environmentId, playerId })
        return { identities: rows.map(identityView) }
      }),
      unlink: Effect.fnUntraced(function* ({ params, payload }) {
        const caller = yield* CurrentPlayer
        return yield* unlink(caller, params.provider, payload.refreshToken)
      })
    })
  })
)
