/**
 * Sign-in by the system of a device (spec section 4.1, decisions 3.2.7): the app has an id token of
 * Apple or Google, made for one of the environment's clients and for this very sign-in, as the nonce
 * proves. A token works once.
 */
import { hash } from "node:crypto"
import { Context, DateTime, Effect, Layer, Option } from "effect"
import {
  type IdentityAlreadyLinked,
  InvalidToken,
  type PlayerBanned,
  type PlayerNotFound,
  type ProviderDisabled,
  ProviderNotConfigured,
  type SessionRevoked,
  Unavailable
} from "#rpc/errors/codes"
import type { NativeRequest, ProviderSession } from "#rpc/oauth/sign-in"
import { ProviderClients } from "./clients.ts"
import { FlowStore, type FlowContext } from "./flow-store.ts"
import { ProviderGrants } from "./grants.ts"
import type { Claims } from "./id-tokens.ts"
import { IdentitySignIn } from "./identity-sign-in.ts"
import { profileFromClaims } from "./profiles.ts"
import { clientIdOf, type Credentials, Providers } from "./providers.ts"

/** Signs people in who have an id token. */
export class NativeSignIn extends Context.Service<
  NativeSignIn,
  {
    readonly signIn: (
      whose: FlowContext,
      request: NativeRequest
    ) => Effect.Effect<
      ProviderSession,
      | ProviderDisabled
      | ProviderNotConfigured
      | InvalidToken
      | IdentityAlreadyLinked
      | PlayerBanned
      | PlayerNotFound
      | SessionRevoked
      | Unavailable
    >
  }
>()("server/features/oauth/native-sign-in/NativeSignIn") {
  static readonly layer = Layer.effect(
    NativeSignIn,
    Effect.gen(function* () {
      return NativeSignIn.of({ signIn: yield* makeNative })
    })
  )
}

/** Apps give the system the digest of a nonce in either form. */
const isNonceOf = (claim: unknown, nonce: string): boolean =>
  claim === hash("sha256", nonce, "hex") || claim === hash("sha256", nonce, "base64url")

/** The client that a token was made for. */
const clientOf = ({ aud }: Claims, known: ReadonlyArray<string>): string | undefined =>
  known.find((id) => (Array.isArray(aud) ? aud.includes(id) : aud === id))

const clientIdsOf = (credentials: Credentials): ReadonlyArray<string> => [
  clientIdOf(credentials),
  ...(credentials.nativeClientIds ?? [])
]

const makeNative = Effect.gen(function* () {
  const clients = yield* ProviderClients
  const entrance = yield* IdentitySignIn
  const grants = yield* ProviderGrants
  const providers = yield* Providers
  const steps = yield* FlowStore

  /** Makes sure that a token is for this sign-in and was not used for another. */
  const useUp = Effect.fnUntraced(function* (whose: FlowContext, claims: Claims, nonce: string) {
    const { exp, nonce: claimed, sub } = claims
    if (!isNonceOf(claimed, nonce)) return yield* new InvalidToken()
    const until = DateTime.makeUnsafe(Number(exp) * 1000)
    // By what it says, not by its text: a signature can be written in more than one way.
    const isNew = yield* steps.useOnce(whose, `${sub}/${claimed}`, until)
    if (!isNew) return yield* new InvalidToken()
  })

  /** Only for the deletion one day: the sign-in goes on without it. */
  const grantOf = Effect.fnUntraced(
    function* (
      { environmentId, provider }: FlowContext,
      credentials: Credentials,
      claims: Claims,
      code: string
    ) {
      const clientId = clientOf(claims, clientIdsOf(credentials)) ?? ""
      const permission = yield* clients.exchangeNativeCode(
        credentials,
        clientId,
        code,
        `${claims["sub"]}`
      )
      return yield* grants.seal(environmentId, provider, permission)
    },
    (sealed, { environmentId, provider }) =>
      Effect.catchTag(sealed, "ProviderError", ({ reason }) =>
        Effect.logWarning("An authorization code was not taken", reason).pipe(
          Effect.annotateLogs({ environmentId, provider }),
          Effect.as(null)
        )
      )
  )

  return Effect.fn("NativeSignIn.signIn")(function* (whose: FlowContext, request: NativeRequest) {
    const { environmentId, provider } = whose
    yield* providers.enabled(environmentId, provider)
    const found = yield* providers.credentials(environmentId, provider)
    if (Option.isNone(found)) return yield* new ProviderNotConfigured()
    const credentials = found.value
    const claims = yield* clients
      .verifyIdToken(provider, request.idToken, clientIdsOf(credentials))
      .pipe(
        Effect.catchTag("ProviderError", ({ reason }) =>
          Effect.logWarning("An id token could not be verified", reason).pipe(
            Effect.annotateLogs({ environmentId, provider }),
            Effect.andThen(Effect.fail(new Unavailable()))
          )
        )
      )
    yield* useUp(whose, claims, request.nonce)
    const told = profileFromClaims(claims, request.name)
    const person = yield* Effect.mapError(told, () => new InvalidToken())
    const { authorizationCode } = request
    const grantSealed =
      provider === "apple" && authorizationCode !== undefined
        ? yield* grantOf(whose, credentials, claims, authorizationCode)
        : null
    return yield* entrance.signIn(whose, { person, grantSealed })
  })
})
