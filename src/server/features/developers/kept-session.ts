/** What a repeated sign-in of a developer needs, and the response made from it. */
import { Effect, Option, Schema } from "effect"
import { type DeveloperSignedIn, InviteOutcome } from "#rpc/developers"
import { DeveloperRepository } from "#sql/developers/repository"
import type { SpendingRequest } from "#server/platform/spent-responses"
import { DeveloperSessions } from "./sessions.ts"
import { viewOf } from "./view.ts"

export const KeptSession = Schema.Struct({
  token: Schema.String,
  expiresAt: Schema.String,
  invite: Schema.optionalKey(InviteOutcome)
})
type KeptSession = typeof KeptSession.Type

export const keptSession = ({ developer: _, ...kept }: DeveloperSignedIn): KeptSession => kept

/** A request of a developer that spends a secret. The secret stands for its caller, too. */
export const spendingOf = (
  path: string,
  secret: string,
  body: unknown,
  key: string | undefined
): SpendingRequest => ({ tenant: "developers", path, secret, body, key })

/** Answers with the session that the sign-in made, or fails if it has ended. */
export const makeRepeatSession = Effect.gen(function* () {
  const repository = yield* DeveloperRepository
  const sessions = yield* DeveloperSessions
  return <E>(ended: E) =>
    Effect.fnUntraced(
      function* (kept: KeptSession) {
        const { developerId } = yield* sessions.verify(kept.token)
        const found = yield* repository.find(developerId)
        if (Option.isNone(found)) return yield* Effect.fail(ended)
        return { developer: viewOf(found.value), ...kept }
      },
      Effect.catchTag("unauthorized", () => Effect.fail(ended))
    )
})
