/**
 * Definitions of the sign-in providers: endpoints, scopes, client authentication and source of the
 * profile.
 */
import { Context, Effect, Record } from "effect"
import type { Provider } from "#rpc/identities"
import type { DeveloperProvider } from "#rpc/oauth/developers"
import type { TargetPolicy } from "#server/platform/outgoing"

/** A provider at which players or developers sign in. */
export type SignInProvider = Provider | DeveloperProvider

interface ProviderDefinition {
  readonly authorize: string
  readonly token: string
  readonly scope: string
  /** Parameters of the authorization request beyond those of OAuth. */
  readonly parameters: Readonly<Record<string, string>>
  readonly clientAuth: "basic" | "post"
  /**
   * Source of the profile. OpenID providers send it in a signed id token, others at a user info
   * endpoint.
   */
  readonly profile:
    | { readonly source: "id-token"; readonly issuer: string; readonly jwks: string }
    | {
        readonly source: "user-info"
        readonly url: string
        /** Endpoint of the user's email addresses, for a profile without a verified one. */
        readonly emails?: string
        /** Issuer of authorization responses; by default the origin of the token endpoint. */
        readonly issuer?: string
      }
  readonly revoke?: string
}

const definitions = {
  google: {
    authorize: "https://accounts.google.com/o/oauth2/v2/auth",
    token: "https://oauth2.googleapis.com/token",
    scope: "openid email profile",
    parameters: { prompt: "select_account" },
    clientAuth: "post",
    profile: {
      source: "id-token",
      issuer: "https://accounts.google.com",
      jwks: "https://www.googleapis.com/oauth2/v3/certs"
    }
  },
  apple: {
    authorize: "https://appleid.apple.com/auth/authorize",
    token: "https://appleid.apple.com/auth/token",
    scope: "name email",
    // Apple requires a form post whenever a scope is requested.
    parameters: { response_mode: "form_post" },
    clientAuth: "post",
    profile: {
      source: "id-token",
      issuer: "https://appleid.apple.com",
      jwks: "https://appleid.apple.com/auth/keys"
    },
    revoke: "https://appleid.apple.com/auth/revoke"
  },
  discord: {
    authorize: "https://discord.com/oauth2/authorize",
    token: "https://discord.com/api/oauth2/token",
    scope: "identify email",
    parameters: {},
    clientAuth: "post",
    profile: { source: "user-info", url: "https://discord.com/api/users/@me" }
  },
  x: {
    authorize: "https://x.com/i/oauth2/authorize",
    token: "https://api.x.com/2/oauth2/token",
    scope: "users.read tweet.read",
    parameters: {},
    clientAuth: "basic",
    profile: {
      source: "user-info",
      url: "https://api.x.com/2/users/me?user.fields=profile_image_url"
    }
  },
  github: {
    authorize: "https://github.com/login/oauth/authorize",
    token: "https://github.com/login/oauth/access_token",
    scope: "read:user user:email",
    parameters: {},
    clientAuth: "post",
    profile: {
      source: "user-info",
      url: "https://api.github.com/user",
      emails: "https://api.github.com/user/emails",
      issuer: "https://github.com/login/oauth"
    }
  }
} as const satisfies Record<SignInProvider, ProviderDefinition>

/**
 * Base URLs, without a slash at the end, in place of the origins of providers; the paths stay. They may
 * be plain `http` and private addresses: tests provide those of their own providers.
 */
export const ProviderBaseUrls = Context.Reference<
  Readonly<Partial<Record<SignInProvider, string>>>
>("server/features/oauth/definitions/ProviderBaseUrls", { defaultValue: () => ({}) })

/** A definition with its base URL applied. */
export interface ResolvedDefinition extends ProviderDefinition {
  readonly provider: SignInProvider
  readonly targets: TargetPolicy
  /** Whether the base URL is plain `http`. */
  readonly insecure: boolean
}

/** Resolves a definition against a base URL. Without one, uses the provider's own endpoints. */
export const definitionOf = (
  provider: SignInProvider,
  base: string | undefined
): ResolvedDefinition => {
  const definition: ProviderDefinition = definitions[provider]
  if (base === undefined) return { ...definition, provider, targets: "public", insecure: false }
  const rebase = (url: string) => {
    const { pathname, search } = new URL(url)
    return `${base}${pathname}${search}`
  }
  const { authorize, profile, revoke, token } = definition
  return {
    ...definition,
    provider,
    targets: "anywhere",
    insecure: base.startsWith("http:"),
    authorize: rebase(authorize),
    token: rebase(token),
    profile:
      profile.source === "id-token"
        ? { source: "id-token", issuer: base, jwks: rebase(profile.jwks) }
        : {
            source: "user-info",
            url: rebase(profile.url),
            ...(profile.emails === undefined ? {} : { emails: rebase(profile.emails) }),
            ...(profile.issuer === undefined ? {} : { issuer: rebase(profile.issuer) })
          },
    ...(revoke === undefined ? {} : { revoke: rebase(revoke) })
  }
}

/** The definitions of all providers, resolved. */
export const providerDefinitions = Effect.map(ProviderBaseUrls, (baseUrls) =>
  Record.map(definitions, (_, provider) => definitionOf(provider, baseUrls[provider]))
)
