/** Settings of mail, and of the accounts of developers. */
import { type Redacted, Schema } from "effect"
import { Email } from "#rpc/email"
import type { DeveloperProvider } from "#rpc/oauth/developers"
import { type EnvironmentOf, incomplete, type Issue, optional, setting } from "./table.ts"
import { DashboardPlace, Secret, SetupToken, SmtpUrl } from "./values.ts"

export const mail = {
  smtpUrl: optional("SMTP_URL", SmtpUrl)`
    The mail server: \`smtps://user:password@host:465\`, or \`smtp://user:password@host:587\` (\`?requireTLS=true\`
    requires STARTTLS). Absent: development shows mails to players at \`/dev/mail\` and prints those to developers;
    production sends none.`,
  from: optional("SVC_MAIL_FROM", Email)`
    The sender's address; the name beside it is the project's. Default: \`no-reply\` at the host of \`SVC_BASE_URL\`.`
}

export const accounts = {
  signups: setting("SVC_SIGNUPS", Schema.Literals(["closed", "invite", "open"]), "closed")`
    Who may sign up as a developer: \`closed\` (the first one only), \`invite\` (with a code), \`open\` (anybody).`,
  dashboard: setting("SVC_DASHBOARD", DashboardPlace, "on")`
    The [dashboard](../guides/dashboard.md) at \`/dashboard\`: \`on\`, \`off\`, or a port. On a port of its own it is
    served only there, and the other port refuses its sessions.`,
  setupToken: optional("SVC_SETUP_TOKEN", SetupToken)`
    The token that the first developer account needs in production: 16 to 128 characters. Absent: the first start
    makes one and prints it once.`
}

export const developerOAuth = {
  googleId: optional("SVC_DEVELOPER_GOOGLE_CLIENT_ID", Schema.String)`
    The OAuth client with which developers sign in with Google. [How
    to](../guides/projects.md#sign-in-with-google-or-github)`,
  googleSecret: optional("SVC_DEVELOPER_GOOGLE_CLIENT_SECRET", Secret)`
    Its secret.`,
  githubId: optional("SVC_DEVELOPER_GITHUB_CLIENT_ID", Schema.String)`
    The OAuth app with which developers sign in with GitHub.`,
  githubSecret: optional("SVC_DEVELOPER_GITHUB_CLIENT_SECRET", Secret)`
    Its secret.`
}

/** An OAuth client of the service at a provider. */
export interface DeveloperOAuthClient {
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
}

type Environment = EnvironmentOf<typeof developerOAuth>

const clientOf = (
  clientId: string | undefined,
  clientSecret: Redacted.Redacted | undefined
): DeveloperOAuthClient | undefined =>
  clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }

/** The client of each provider; undefined where developers cannot sign in with it. */
export const developerClientsOf = (
  env: Environment
): Readonly<Record<DeveloperProvider, DeveloperOAuthClient | undefined>> => ({
  google: clientOf(env.SVC_DEVELOPER_GOOGLE_CLIENT_ID, env.SVC_DEVELOPER_GOOGLE_CLIENT_SECRET),
  github: clientOf(env.SVC_DEVELOPER_GITHUB_CLIENT_ID, env.SVC_DEVELOPER_GITHUB_CLIENT_SECRET)
})

export const accountIssues = (env: Environment): ReadonlyArray<Issue> => [
  ...incomplete(env, ["SVC_DEVELOPER_GOOGLE_CLIENT_ID", "SVC_DEVELOPER_GOOGLE_CLIENT_SECRET"]),
  ...incomplete(env, ["SVC_DEVELOPER_GITHUB_CLIENT_ID", "SVC_DEVELOPER_GITHUB_CLIENT_SECRET"])
]
