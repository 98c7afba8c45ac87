/** Settings of external sign-in: the clients with which developers sign in. */
import { type Redacted, Schema } from "effect"
import type { DeveloperProvider } from "#rpc/oauth/developers"

/** An OAuth client of the service at a provider. */
export interface DeveloperOAuthClient {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

export interface OAuthSettings {
  /** The client of each provider; undefined where developers cannot sign in with it. */
  readonly developerClients: Readonly<Record<DeveloperProvider, DeveloperOAuthClient | undefined>>
}

const ClientId = Schema.optionalKey(Schema.String)
const ClientSecret = Schema.optionalKey(Schema.RedactedFromValue(Schema.String))

/** The variables of external sign-in. */
export const oauthVariables = {
  SVC_DEVELOPER_GOOGLE_CLIENT_ID: ClientId,
  SVC_DEVELOPER_GOOGLE_CLIENT_SECRET: ClientSecret,
  SVC_DEVELOPER_GITHUB_CLIENT_ID: ClientId,
  SVC_DEVELOPER_GITHUB_CLIENT_SECRET: ClientSecret
}

const Variables = Schema.Struct(oauthVariables)

const clientOf = (
  clientId: string | undefined,
  clientSecret: Redacted.Redacted | undefined
): DeveloperOAuthClient | undefined =>
  clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }

export const oauthOf = (env: typeof Variables.Type): OAuthSettings => ({
  developerClients: {
    google: clientOf(env.SVC_DEVELOPER_GOOGLE_CLIENT_ID, env.SVC_DEVELOPER_GOOGLE_CLIENT_SECRET),
    github: clientOf(env.SVC_DEVELOPER_GITHUB_CLIENT_ID, env.SVC_DEVELOPER_GITHUB_CLIENT_SECRET)
  }
})

const pairs = [
  ["SVC_DEVELOPER_GOOGLE_CLIENT_ID", "SVC_DEVELOPER_GOOGLE_CLIENT_SECRET"],
  ["SVC_DEVELOPER_GITHUB_CLIENT_ID", "SVC_DEVELOPER_GITHUB_CLIENT_SECRET"]
] as const

/** A client of which only one half is set, or undefined. */
export const oauthIssue = (env: typeof Variables.Type) => {
  for (const [id, secret] of pairs) {
    if ((env[id] === undefined) === (env[secret] === undefined)) continue
    const [absent, present] = env[id] === undefined ? [id, secret] : [secret, id]
    return { path: [absent], issue: `must be set together with ${present}` }
  }
  return undefined
}
