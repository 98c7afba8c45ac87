/** What a repeated sign-in with a provider needs, and the response made from it. */
import { Effect, Option, Schema } from "effect"
import { Provider } from "#rpc/identities"
import type { EnvironmentId } from "#rpc/ids"
import type { ProviderSession } from "#rpc/oauth/sign-in"
import type { Sessions } from "../sessions/service.ts"

export const KeptSignIn = Schema.Struct({
  refreshToken: Schema.String,
  provider: Provider,
  linked: Schema.Boolean
})
export type KeptSignIn = typeof KeptSignIn.Type

export const keptSignIn = ({ linked, provider, refreshToken }: ProviderSession): KeptSignIn => ({
  linked,
  provider,
  refreshToken
})

/** Answers with the session that the sign-in made, or fails if it has ended or was refreshed. */
export const repeatSignIn = <E>(
  sessions: Sessions["Service"],
  environmentId: EnvironmentId,
  ended: E
) =>
  Effect.fnUntraced(function* ({ refreshToken, ...signIn }: KeptSignIn) {
    const again = yield* sessions.reissue(environmentId, refreshToken)
    return Option.isSome(again) ? { ...again.value, ...signIn } : yield* Effect.fail(ended)
  })
