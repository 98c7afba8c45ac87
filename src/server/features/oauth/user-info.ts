/** Fetches the profile of an access token from the user info endpoint of a provider. */
import { Effect, Option, Schema } from "effect"
import type { ResolvedDefinition, SignInProvider } from "./definitions.ts"
import {
  profileFromDiscord,
  profileFromGithub,
  profileFromX,
  type ProviderProfile
} from "./profiles.ts"
import { ProviderError, type ProviderHttp, providerRequests } from "./provider-http.ts"

type UserInfo = Extract<ResolvedDefinition["profile"], { readonly source: "user-info" }>

/** Fails with a {@link ProviderError} where a profile has no valid user id. */
export const requireProfile = (profile: Effect.Effect<ProviderProfile, Schema.SchemaError>) =>
  Effect.mapError(profile, () => new ProviderError({ reason: "The profile has no valid user id" }))

const decodeProblem = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ reason: Schema.String.check(Schema.isPattern(/^[\w-]+$/)) })
  )
)

/**
 * Returns the provider's reason in an error body, such as `client-not-enrolled` for apps of old tiers
 * of X.
 */
const problemOf = (body: string): string =>
  Option.match(decodeProblem(body), { onNone: () => "", onSome: ({ reason }) => ` ${reason}` })

/** User agent of requests. GitHub refuses requests without one. */
const userAgent = "player-backend"

/** Returns the profile of an access token; fails if the provider gives none. */
export const makeFetchProfile = ({ definitions, outgoing }: ProviderHttp) => {
  const get = Effect.fnUntraced(function* (
    provider: SignInProvider,
    url: string,
    accessToken: string
  ) {
    const { body, status } = yield* Effect.mapError(
      outgoing.request({
        purpose: "signIns",
        url,
        method: "GET",
        headers: {
          authorization: `Bearer ${accessToken}`,
          accept: "application/json",
          "user-agent": userAgent
        },
        timeoutMillis: providerRequests.requestMillis,
        responseMaxBytes: providerRequests.responseMaxBytes,
        targets: definitions[provider].targets
      }),
      ({ message }) => new ProviderError({ reason: message })
    )
    if (status === 200) return body
    return yield* new ProviderError({ reason: `${status}${problemOf(body)}` })
  })

  return Effect.fnUntraced(function* (
    provider: SignInProvider,
    { emails, url }: UserInfo,
    accessToken: string
  ) {
    const body = yield* get(provider, url, accessToken)
    if (emails !== undefined) {
      const addresses = yield* get(provider, emails, accessToken)
      return yield* requireProfile(profileFromGithub(body, addresses))
    }
    return yield* requireProfile(
      provider === "discord" ? profileFromDiscord(body) : profileFromX(body)
    )
  })
}
