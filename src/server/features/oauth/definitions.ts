/**
 * The sign-in providers in one table: where they are, what they are asked for, how a client proves who
 * it is, and how they tell who a person is. Settings may point a provider elsewhere: then the same
 * paths are asked there, by `http` and at private addresses too.
 */
import type { Provider } from "#rpc/identities"
import type { Reach } from "#server/platform/outgoing"

interface ProviderDefinition {
  readonly authorize: string
  readonly token: string
  readonly scope: string
  /** Sent to the provider beside what OAuth asks for. */
  readonly parameters: Readonly<Record<string, string>>
  readonly clientAuth: "basic" | "post"
  /** An OpenID provider tells in a signed token who a person is, others when they are asked. */
  readonly tells:
    | { readonly by: "token"; readonly issuer: string; readonly keys: string }
    | { readonly by: "request"; readonly person: string }
  readonly revoke?: string
}

const shapes = {
  google: {
    authorize: "https://accounts.google.com/o/oauth2/v2/auth",
    token: "https://oauth2.googleapis.com/token",
    scope: "openid email profile",
    parameters: { prompt: "select_account" },
    clientAuth: "post",
    tells: {
      by: "token",
      issuer: "https://accounts.google.com",
      keys: "https://www.googleapis.com/oauth2/v3/certs"
    }
  },
  apple: {
    authorize: "https://appleid.apple.com/auth/authorize",
    token: "https://appleid.apple.com/auth/token",
    scope: "name email",
    // Apple returns with a form whenever it is asked for a scope.
    parameters: { response_mode: "form_post" },
    clientAuth: "post",
    tells: {
      by: "token",
      issuer: "https://appleid.apple.com",
      keys: "https://appleid.apple.com/auth/keys"
    },
    revoke: "https://appleid.apple.com/auth/revoke"
  },
  discord: {
    authorize: "https://discord.com/oauth2/authorize",
    token: "https://discord.com/api/oauth2/token",
    scope: "identify email",
    parameters: {},
    clientAuth: "post",
    tells: { by: "request", person: "https://discord.com/api/users/@me" }
  },
  x: {
    authorize: "https://x.com/i/oauth2/authorize",
    token: "https://api.x.com/2/oauth2/token",
    scope: "users.read tweet.read",
    parameters: {},
    clientAuth: "basic",
    tells: { by: "request", person: "https://api.x.com/2/users/me" }
  }
} as const satisfies Record<Provider, ProviderDefinition>

/** A provider where it is asked. */
export interface ResolvedDefinition extends ProviderDefinition {
  readonly provider: Provider
  readonly reach: Reach
  /** Whether the address that it was pointed to is one of plain `http`. */
  readonly insecure: boolean
}

const pointedTo = (base: string) => (url: string) => `${base}${new URL(url).pathname}`

/** A provider at its own address, or at another. */
export const definitionOf = (provider: Provider, base: string | undefined): ResolvedDefinition => {
  const shape: ProviderDefinition = shapes[provider]
  if (base === undefined) return { ...shape, provider, reach: "public", insecure: false }
  const at = pointedTo(base)
  const { authorize, revoke, tells, token } = shape
  return {
    ...shape,
    provider,
    reach: "anywhere",
    insecure: base.startsWith("http:"),
    authorize: at(authorize),
    token: at(token),
    tells:
      tells.by === "token"
        ? { by: "token", issuer: base, keys: at(tells.keys) }
        : { by: "request", person: at(tells.person) },
    ...(revoke === undefined ? {} : { revoke: at(revoke) })
  }
}
