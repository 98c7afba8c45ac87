/**
 * External sign-in (spec section 5, rules 9 to 11): the credentials of an environment's providers, as
 * an operator enters them (decisions 3.2.10). They are stored sealed and never given back.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Provider } from "../identities.ts"
import { oauth as limits } from "../limits.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "../mounts.ts"

/** Those that take the id and secret of an OAuth client. */
const ClientProvider = Schema.Literals(["google", "discord", "x"])

const Field = Schema.String.check(
  Schema.isPattern(new RegExp(`^[!-~]{1,${limits.credentialMaxCharacters}}$`), {
    message: `Expected 1 to ${limits.credentialMaxCharacters} printable characters, no spaces`
  })
)

const AppleId = Schema.String.check(
  Schema.isPattern(/^[A-Z0-9]{10}$/, { message: "Expected the 10 characters that Apple shows" })
)

/** The client ids of native apps, whose id tokens are taken beside those of the client itself. */
const NativeClientIds = Schema.optionalKey(
  Schema.Array(Field).check(Schema.isMaxLength(limits.nativeClientIdsMax))
)

/** An OAuth client. `nativeClientIds`: those of the Android and iOS apps, for `google`. */
export const ClientCredentials = Schema.Struct({
  clientId: Field,
  clientSecret: Field,
  nativeClientIds: NativeClientIds
})
export type ClientCredentials = typeof ClientCredentials.Type

/**
 * Sign in with Apple: `privateKey` is the text of the `.p8` file (PKCS #8, EC P-256);
 * `nativeClientIds` are the bundle ids of apps.
 */
export const AppleCredentials = Schema.Struct({
  servicesId: Field,
  nativeClientIds: NativeClientIds,
  teamId: AppleId,
  keyId: AppleId,
  privateKey: Schema.String.check(Schema.isMaxLength(limits.privateKeyMaxCharacters))
})
export type AppleCredentials = typeof AppleCredentials.Type

/**
 * How a provider is set up. `enabled` is `auth.providers` of the config; `callbackUrl` is what to
 * enter at the provider; `clientId` (Apple's Services ID) is null until there are credentials.
 */
export const ProviderState = Schema.Struct({
  provider: Provider,
  configured: Schema.Boolean,
  enabled: Schema.Boolean,
  callbackUrl: Schema.String,
  clientId: Schema.NullOr(Schema.String)
})
export type ProviderState = typeof ProviderState.Type

const providers = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  HttpApiGroup.make(id).add(
    HttpApiEndpoint.get("read", "/auth/providers/:provider", {
      params: { ...params, provider: Provider },
      success: ProviderState
    }).annotate(OpenApi.Summary, "How a sign-in provider is set up; never its secrets"),
    HttpApiEndpoint.put("putApple", "/auth/providers/apple", {
      params,
      payload: AppleCredentials,
      success: ProviderState
    }).annotate(OpenApi.Summary, "Set the credentials of Sign in with Apple"),
    HttpApiEndpoint.put("put", "/auth/providers/:provider", {
      params: { ...params, provider: ClientProvider },
      payload: ClientCredentials,
      success: ProviderState
    }).annotate(OpenApi.Summary, "Set the credentials of a sign-in provider"),
    HttpApiEndpoint.delete("delete", "/auth/providers/:provider", {
      params: { ...params, provider: Provider },
      success: ProviderState
    }).annotate(OpenApi.Summary, "Forget the credentials of a sign-in provider")
  )

/** `auth/providers`: the credentials of external sign-in. */
export class ProvidersApi extends underKey(providers("providers", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectProvidersApi extends underProject(
  providers("projectProviders", projectParams)
) {}
