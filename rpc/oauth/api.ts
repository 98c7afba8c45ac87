/**
 * Credentials of an environment's OAuth providers, as an operator enters them. The service stores them
 * encrypted and never returns them.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { BodyMaxBytes } from "../auth.ts"
import { group } from "../feature.ts"
import { Provider } from "../identities.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "../mounts.ts"
import { operation, type OperationFacts } from "../operations.ts"
import { oauthLimits } from "./limits.ts"

/** Providers that need the id and secret of an OAuth client. */
const ClientProvider = Schema.Literals(["google", "discord", "x"])

const Field = Schema.String.check(
  Schema.isPattern(new RegExp(`^[!-~]{1,${oauthLimits.credentialMaxCharacters}}$`), {
    message: `Expected 1 to ${oauthLimits.credentialMaxCharacters} printable characters, no spaces`
  })
)

const AppleId = Schema.String.check(
  Schema.isPattern(/^[A-Z0-9]{10}$/, {
    message: "Expected the 10 characters that Apple's developer site shows"
  })
)

/**
 * Client ids of native apps. The service accepts their id tokens beside those of the main client.
 */
const NativeClientIds = Schema.optionalKey(
  Schema.Array(Field).check(Schema.isMaxLength(oauthLimits.nativeClientIdsMax))
)

/** An OAuth client. `nativeClientIds`: those of the Android and iOS apps, for `google`. */
export const ClientCredentials = Schema.Struct({
  clientId: Field,
  clientSecret: Field,
  nativeClientIds: NativeClientIds
})
export type ClientCredentials = typeof ClientCredentials.Type

/**
 * Credentials of Sign in with Apple. `privateKey` is the text of the `.p8` file (PKCS #8, EC
 * P-256). `nativeClientIds` are the bundle ids of apps.
 */
export const AppleCredentials = Schema.Struct({
  servicesId: Field,
  nativeClientIds: NativeClientIds,
  teamId: AppleId,
  keyId: AppleId,
  privateKey: Schema.String.check(Schema.isMaxLength(oauthLimits.privateKeyMaxCharacters))
})
export type AppleCredentials = typeof AppleCredentials.Type

/**
 * The set-up of a provider. `enabled` comes from `auth.providers` of the config. Enter `callbackUrl` at
 * the provider. `clientId` (Apple's Services ID) is null until credentials are set.
 */
export const ProviderState = Schema.Struct({
  provider: Provider,
  configured: Schema.Boolean,
  enabled: Schema.Boolean,
  callbackUrl: Schema.String,
  clientId: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "ProviderState",
  description: "Set-up of an OAuth provider. Enter `callbackUrl` at the provider."
})
export type ProviderState = typeof ProviderState.Type

/** The operations, for the audit log. No agent gets near a credential. */
const operations = {
  put: { audit: "provider.put" },
  delete: { audit: "provider.delete" }
} as const satisfies Record<string, OperationFacts>

const providers = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(id, "server", "OAuth providers", "Credentials of the OAuth providers.").add(
    HttpApiEndpoint.get("read", "/auth/providers/:provider", {
      params: { ...params, provider: Provider },
      success: ProviderState
    }).annotate(OpenApi.Summary, "Get the set-up of a provider, without its secrets"),
    HttpApiEndpoint.put("putApple", "/auth/providers/apple", {
      params,
      payload: AppleCredentials,
      success: ProviderState
    })
      .annotateMerge(operation("Set the credentials of Sign in with Apple", operations.put))
      .annotate(BodyMaxBytes, oauthLimits.bodyMaxBytes),
    HttpApiEndpoint.put("put", "/auth/providers/:provider", {
      params: { ...params, provider: ClientProvider },
      payload: ClientCredentials,
      success: ProviderState
    }).annotateMerge(operation("Set the credentials of a sign-in provider", operations.put)),
    HttpApiEndpoint.delete("delete", "/auth/providers/:provider", {
      params: { ...params, provider: Provider },
      success: ProviderState
    }).annotateMerge(operation("Delete the credentials of a sign-in provider", operations.delete))
  )

/** `auth/providers`: the credentials of external sign-in. */
export class ProvidersApi extends underKey(providers("providers", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectProvidersApi extends underProject(
  providers("projectProviders", projectParams)
) {}
