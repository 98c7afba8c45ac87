/** Settings of the network: where the service listens, and who reaches it. */
import { Schema } from "effect"
import { isPublicHost } from "./deployment.ts"
import { type EnvironmentOf, type Issue, optional, setting } from "./table.ts"
import { listOf, OnOff, TrustedNetwork, whole } from "./values.ts"

export const network = {
  port: setting("PORT", whole(0, 65_535), 8080)`
    The TCP port to listen on; 0 picks a free one.`,
  host: setting("HOST", Schema.String, "0.0.0.0")`
    The address to listen on.`,
  baseUrl: optional("SVC_BASE_URL", Schema.URLFromString)`
    The address that players use, and the issuer of access tokens. Default: \`http://localhost:<PORT>\`, with the free
    port if \`PORT\` is 0.`,
  allowPublicDevelopment: setting("SVC_ALLOW_PUBLIC_DEVELOPMENT", OnOff, "off")`
    \`on\` starts a service outside production with a public \`SVC_BASE_URL\`. Its demo project is open to everybody.`,
  trustedProxies: setting("SVC_TRUSTED_PROXIES", listOf(TrustedNetwork), "")`
    Addresses and networks (\`10.0.7.0/24\`) of your load balancers and nothing else, comma-separated: their
    \`X-Forwarded-For\` names the client. See [what does not start](deploy.md#what-does-not-start).`,
  maxConnections: setting("SVC_MAX_CONNECTIONS", whole(6, 1_000_000), 60_000)`
    Most open connections of the process; a further one is closed at once. The last sixth is for HTTP requests: a
    WebSocket then gets 503.`,
  connectionsPerAddress: setting("SVC_CONNECTIONS_PER_ADDRESS", whole(1, 1_000_000), 1000)`
    Most connections of one client address (IPv4, or /64 of IPv6); a further one gets 429 and is closed. Behind a
    trusted proxy, requests in progress and WebSockets of the client count instead, and the proxy itself has no limit.
    Raise it where many players share an address, such as a school or a mobile network. \`SVC_THROTTLES=off\` lifts
    it.`
}

interface Environment extends EnvironmentOf<typeof network> {
  readonly NODE_ENV: string
}

export const networkIssues = (env: Environment): ReadonlyArray<Issue> =>
  env.NODE_ENV !== "production" &&
  !env.SVC_ALLOW_PUBLIC_DEVELOPMENT &&
  isPublicHost(env.SVC_BASE_URL?.hostname ?? "localhost")
    ? [
        {
          path: ["SVC_BASE_URL"],
          issue:
            "is public, but outside production the service stores mails instead of sending them and " +
            "seeds a demo project. Set NODE_ENV=production, or SVC_ALLOW_PUBLIC_DEVELOPMENT=on to " +
            "start nevertheless"
        }
      ]
    : []
