/**
 * Who may call which endpoint (spec section 5), derived from the definitions. It is committed as
 * `rpc/authorization.md`, so that a change of who may do what is a diff; a test holds the running
 * service to it, endpoint by endpoint and caller by caller.
 */
import { Context } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "#rpc/api"
import {
  DeveloperSession,
  EnvironmentMember,
  OpenToBanned,
  OptionalPlayerToken,
  PlayerToken,
  ProjectMember,
  PublishableKey,
  PublishableKeyInQuery,
  SecretKey
} from "#rpc/auth"

/** Whoever may call, with keys, tokens and sessions of the environment or project in question. */
export const callers = {
  nobody: "nobody",
  publishable: "`pk_`",
  player: "`pk_` and player",
  bannedPlayer: "`pk_` and banned player",
  otherPlayer: "`pk_` and player of another environment or project",
  expiredPlayer: "`pk_` and player whose token has ended",
  secret: "`sk_`",
  revoked: "revoked `pk_` or `sk_`",
  developer: "developer of the project",
  otherDeveloper: "developer of another project",
  signedOut: "developer whose session has ended",
  misplaced: "key, token or session in the wrong place"
} as const
export type Caller = keyof typeof callers

export const isCaller = (name: string): name is Caller => name in callers

interface Rule {
  /** Let through, to the checks of the feature, the payload and what it is about. */
  readonly allowed: ReadonlyArray<Caller>
  /** Status and code for everybody else. */
  readonly otherwise: string
  readonly own?: Partial<Record<Caller, string>>
}

const invalidKey = "401 invalid_key"
const unauthorized = "401 unauthorized"
const secretKeyRequired = "403 secret_key_required"
const playerBanned = "403 player_banned"
const tokenExpired = "401 token_expired"

/** Whoever has a publishable key, with whatever else. */
const withKey = [
  "publishable",
  "player",
  "bannedPlayer",
  "otherPlayer",
  "expiredPlayer"
] as const satisfies ReadonlyArray<Caller>

const rules = {
  anyone: { allowed: Object.keys(callers).filter(isCaller), otherwise: "" },
  publishable: { allowed: withKey, otherwise: invalidKey },
  /** The key stands in the query, and none of these callers has it there. */
  link: { allowed: [], otherwise: invalidKey },
  /** A player is let in as itself, or not at all. */
  maybePlayer: {
    allowed: ["publishable", "player"],
    otherwise: invalidKey,
    own: {
      bannedPlayer: playerBanned,
      otherPlayer: unauthorized,
      expiredPlayer: tokenExpired
    }
  },
  player: {
    allowed: ["player"],
    otherwise: invalidKey,
    own: {
      publishable: unauthorized,
      bannedPlayer: playerBanned,
      otherPlayer: unauthorized,
      expiredPlayer: tokenExpired
    }
  },
  /** Reads, and appeals. */
  evenBanned: {
    allowed: ["player", "bannedPlayer"],
    otherwise: invalidKey,
    own: {
      publishable: unauthorized,
      otherPlayer: unauthorized,
      expiredPlayer: tokenExpired
    }
  },
  secret: {
    allowed: ["secret"],
    otherwise: invalidKey,
    own: {
      publishable: secretKeyRequired,
      player: secretKeyRequired,
      bannedPlayer: secretKeyRequired,
      otherPlayer: secretKeyRequired,
      expiredPlayer: secretKeyRequired
    }
  },
  developer: { allowed: ["developer", "otherDeveloper"], otherwise: unauthorized },
  member: {
    allowed: ["developer"],
    otherwise: unauthorized,
    own: { otherDeveloper: "404 not_found" }
  }
} as const satisfies Record<string, Rule>

/** Whom an endpoint is for, by the middleware that stands before it. */
export type Access = keyof typeof rules

const accessOf = (endpoint: HttpApiEndpoint.Top): Access => {
  const behind = (...some: ReadonlyArray<{ readonly key: string }>) =>
    Array.from(endpoint.middlewares).some(({ key }) => some.some((it) => it.key === key))
  if (behind(PlayerToken)) {
    const open = endpoint.method === "GET" || Context.get(endpoint.annotations, OpenToBanned)
    return open ? "evenBanned" : "player"
  }
  if (behind(OptionalPlayerToken)) return "maybePlayer"
  if (behind(PublishableKeyInQuery)) return "link"
  if (behind(PublishableKey)) return "publishable"
  if (behind(SecretKey)) return "secret"
  if (behind(ProjectMember, EnvironmentMember)) return "member"
  return behind(DeveloperSession) ? "developer" : "anyone"
}

/** An endpoint as the matrix has it. */
export interface Endpoint {
  readonly method: string
  readonly path: string
  readonly access: Access
}

const endpointsOfApi = (): ReadonlyArray<Endpoint> => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) =>
      found.push({ method: endpoint.method, path: endpoint.path, access: accessOf(endpoint) })
  })
  return found.toSorted((a, b) => a.path.localeCompare(b.path) || a.method.localeCompare(b.method))
}

/** Every endpoint of the interface, by path. */
export const endpoints: ReadonlyArray<Endpoint> = endpointsOfApi()

/** Status and code by which an endpoint refuses a caller; undefined: the caller may call it. */
export const refusal = ({ access }: Endpoint, caller: Caller): string | undefined => {
  const rule: Rule = rules[access]
  return rule.allowed.includes(caller) ? undefined : (rule.own?.[caller] ?? rule.otherwise)
}

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const names = Object.keys(callers).filter(isCaller)

/** The matrix as Markdown. */
export const authorizationText = (): string =>
  [
    "# Who may call what",
    "",
    "Generated by `npm run generate`. `yes`: let through to the checks of feature, payload and",
    "ownership; anything else is how the caller is refused, before anything is read or written. The",
    "start of a sign-in by a plain link (GET) takes its `pk_` in the query and from nowhere else.",
    "",
    row(["endpoint", ...names.map((name) => callers[name])]),
    row(["endpoint", ...names].map(() => "---")),
    ...endpoints.map((endpoint) =>
      row([
        `${endpoint.method} ${endpoint.path}`,
        ...names.map((name) => refusal(endpoint, name) ?? "yes")
      ])
    ),
    ""
  ].join("\n")
