/**
 * HTTP calls of the API, derived from the groups in `rpc` that a publishable key can call. They fail
 * with the errors of the definitions; other codes become a {@link ServiceError}.
 */
import { Context, Effect, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import { HttpApi, HttpApiClient } from "effect/http-api"
import { type AgeBand, AgesApi, type AgeSignal } from "#rpc/ages"
import { AppealsApi } from "#rpc/appeals"
import { DefinitionsApi } from "#rpc/config"
import { EmailApi, PlayerEmailApi } from "#rpc/email"
import { InvalidRequest } from "#rpc/errors/codes"
import { IdentitiesApi, type Method, type Provider } from "#rpc/identities"
import { NewsApi } from "#rpc/news"
import {
  type NativeProvider,
  type NativeRequest,
  OAuthApi,
  type StartRequest
} from "#rpc/oauth/sign-in"
import { type DeletionProof, PlayerDataApi } from "#rpc/player-data"
import { PlayersApi } from "#rpc/players"
import { RoomsApi } from "#rpc/rooms"
import { type SavePut, SavesApi } from "#rpc/saves"
import { SessionsApi } from "#rpc/sessions"
import { StatsApi } from "#rpc/stats"
import { TransferApi } from "#rpc/transfer"
import { issuesOf, NetworkError, ServiceError, TimedOut } from "./errors.ts"

/** The groups for publishable keys. The whole API would cost a browser too many bytes. */
class PublicApi extends HttpApi.make("player-backend")
  .add(SessionsApi)
  .add(EmailApi)
  .add(PlayerEmailApi)
  .add(OAuthApi)
  .add(TransferApi)
  .add(PlayersApi)
  .add(IdentitiesApi)
  .add(PlayerDataApi)
  .add(AgesApi)
  .add(NewsApi)
  .add(AppealsApi)
  .add(RoomsApi)
  .add(SavesApi)
  .add(StatsApi)
  .add(DefinitionsApi) {}

/** The access token of a request. Without one, the request sends only the key. */
export const AccessToken = Context.Reference<string | undefined>("client/http/AccessToken", {
  defaultValue: () => undefined
})

/** Timeout of a request. */
const requestTimeout = "10 seconds"

const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optionalKey(Schema.Unknown)
  })
})

/** The service was not reached, or it answered with an unknown code. */
const readFailure = Effect.fnUntraced(function* (failure: HttpClientError.HttpClientError) {
  const { response } = failure
  if (response === undefined) {
    const message = "Failed to reach the service."
    return yield* new NetworkError({ message, cause: failure })
  }
  const { error } = yield* response.json.pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(ErrorBody)),
    Effect.orElseSucceed(() => ({ error: { code: "unknown", message: failure.message } }))
  )
  return yield* new ServiceError(error)
})

const toServiceError = (error: unknown) =>
  error instanceof Schema.SchemaError
    ? new ServiceError({ code: "unreadable_answer", message: error.message })
    : error

/** Maps the errors of a request to those of the client, and adds the timeout. */
const mapErrors = <A, E>(
  request: Effect.Effect<A, E | HttpClientError.HttpClientError | Schema.SchemaError>
) =>
  request.pipe(
    Effect.catch(
      (error): Effect.Effect<never, E | InvalidRequest | NetworkError | ServiceError> => {
        if (error instanceof HttpClientError.HttpClientError) return readFailure(error)
        if (!(error instanceof Schema.SchemaError)) return Effect.fail(error)
        // `transformResponse` decodes responses, so this error concerns the request.
        const details = { issues: issuesOf(error) }
        return Effect.fail(new InvalidRequest({ message: error.message, details }))
      }
    ),
    Effect.timeoutOrElse({
      duration: requestTimeout,
      orElse: () => Effect.fail(new TimedOut({ message: `No answer within ${requestTimeout}.` }))
    })
  )

const authorize = (key: string) => (request: HttpClientRequest.HttpClientRequest) =>
  Effect.map(AccessToken, (token) => {
    const keyed = HttpClientRequest.setHeader(request, "X-Svc-Key", key)
    return token === undefined ? keyed : HttpClientRequest.bearerToken(keyed, token)
  })

/** The editable profile of a player. */
export interface Profile {
  /** 1 to 32 characters. */
  readonly displayName?: string
}

interface RefreshToken {
  readonly refreshToken: string
}

/** An email address with its password. */
export interface Credentials {
  readonly email: string
  /** A new password has 8 to 256 characters. */
  readonly password: string
}

/** Options of a mail with a link. */
export interface MailOptions {
  /**
   * Where the link leads, with the token in the fragment. `auth.redirectUrls` must allow it. Default: a
   * page of the service.
   */
  readonly redirectUrl?: string
}

interface PasswordChange extends RefreshToken {
  readonly currentPassword: string
  readonly newPassword: string
}

/** Filter of a room list. */
export interface RoomFilter {
  /** Only rooms of this mode. */
  readonly mode?: string
  /** 1 to 100; default 50. */
  readonly limit?: number
}

/** The expected version of a save; 0: it must not exist. */
export interface SaveVersion {
  readonly ifVersion?: number
}

const makeApi = (options: { readonly baseUrl: string; readonly key: string }) =>
  HttpApiClient.make(PublicApi, {
    baseUrl: options.baseUrl,
    transformClient: (client) =>
      client.pipe(
        HttpClient.mapRequestEffect(authorize(options.key)),
        // CORS does not allow tracing headers: the browser would block the request.
        HttpClient.transform(Effect.provideService(HttpClient.TracerPropagationEnabled, false))
      ),
    transformResponse: Effect.mapError(toServiceError)
  })

/** Requests about sign-in and the player's account. */
const identityRequests = (api: Effect.Success<ReturnType<typeof makeApi>>) => ({
  signUp: (payload: Credentials & Profile & MailOptions) =>
    mapErrors(api.email.signup({ payload })),
  signIn: (payload: Credentials) => mapErrors(api.email.login({ payload })),
  linkEmail: (payload: Credentials & MailOptions) => mapErrors(api.playerEmail.link({ payload })),
  verify: (token: string) => mapErrors(api.email.verify({ payload: { token } })),
  resend: (payload: MailOptions) => mapErrors(api.playerEmail.resend({ payload })),
  forgot: (payload: MailOptions & { readonly email: string }) =>
    mapErrors(api.email.forgot({ payload })),
  reset: (token: string, password: string) =>
    mapErrors(api.email.reset({ payload: { token, password } })),
  changePassword: (payload: PasswordChange) => mapErrors(api.playerEmail.change({ payload })),
  startSignIn: (provider: Provider, payload: StartRequest) =>
    mapErrors(api.oauth.start({ params: { provider }, payload })),
  exchange: (payload: { readonly code: string; readonly verifier: string }) =>
    mapErrors(api.oauth.exchange({ payload })),
  nativeSignIn: (provider: NativeProvider, payload: NativeRequest) =>
    mapErrors(api.oauth.native({ params: { provider }, payload })),
  issueTransfer: mapErrors(api.transfer.issue({})),
  redeemTransfer: (code: string) => mapErrors(api.transfer.redeem({ payload: { code } })),
  identities: mapErrors(api.identities.list({})),
  unlink: (provider: Method, payload: RefreshToken) =>
    mapErrors(api.identities.unlink({ params: { provider }, payload })),
  export: mapErrors(api.playerData.export({})),
  delete: (payload: DeletionProof) => mapErrors(api.playerData.delete({ payload })),
  ageProfile: mapErrors(api.ages.profile({})),
  declareAge: (band: AgeBand) => mapErrors(api.ages.declare({ payload: { band } })),
  signalAge: (payload: AgeSignal) => mapErrors(api.ages.signal({ payload })),
  newsEnabled: mapErrors(api.news.enabled({})),
  chooseNews: (optIn: boolean) => mapErrors(api.news.choose({ payload: { optIn } }))
})

/** Makes the requests of the API, as effects. */
export const makeHttp = Effect.fnUntraced(function* (options: {
  readonly baseUrl: string
  readonly key: string
}) {
  const api = yield* makeApi(options)
  return {
    ...identityRequests(api),
    guest: (payload: Profile) => mapErrors(api.sessions.guest({ payload })),
    refresh: (payload: RefreshToken) => mapErrors(api.sessions.refresh({ payload })),
    logout: (payload: RefreshToken) => mapErrors(api.sessions.logout({ payload })),
    appeal: (payload: RefreshToken & { readonly message: string }) =>
      mapErrors(api.appeals.appeal({ payload })),
    me: mapErrors(api.players.me({})),
    update: (payload: Required<Profile>) => mapErrors(api.players.update({ payload })),
    listRooms: (query: RoomFilter) => mapErrors(api.rooms.list({ query })),
    listSaves: mapErrors(api.saves.list({})),
    readSave: (key: string) => mapErrors(api.saves.read({ params: { key } })),
    writeSave: (key: string, payload: typeof SavePut.Type) =>
      mapErrors(api.saves.write({ params: { key }, payload })),
    removeSave: (key: string, query: SaveVersion) =>
      mapErrors(api.saves.remove({ params: { key }, query })),
    readStats: mapErrors(api.stats.read({})),
    reportStats: (stats: Readonly<Record<string, number>>, key: string | undefined) => {
      const headers = key === undefined ? {} : { "idempotency-key": key }
      return mapErrors(api.stats.report({ headers, payload: { stats } }))
    },
    definitions: mapErrors(api.definitions.read({ headers: {} }))
  }
}, Effect.provide(FetchHttpClient.layer))

export type Http = Effect.Success<ReturnType<typeof makeHttp>>

type Failure<Request> =
  Request extends Effect.Effect<unknown, infer E>
    ? E
    : Request extends (...input: ReadonlyArray<never>) => Effect.Effect<unknown, infer E>
      ? E
      : never

/** Errors of the requests. */
export type HttpFailure = Failure<Http[keyof Http]>
