/**
 * Authorization matrix, derived from the API definitions. The repository has it as
 * `rpc/authorization.md`, so a change of permissions shows in a diff. A test checks the running
 * service against it, for every endpoint and caller.
 */
import { Context } from "effect"
import { HttpApi, type HttpApiEndpoint, type HttpApiGroup } from "effect/http-api"
import { Api } from "#rpc/api"
import {
  AnyKey,
  DeveloperSession,
  EnvironmentMember,
  SessionOnly,
  OpenToBanned,
  OptionalPlayerToken,
  PlayerToken,
  ProjectMember,
  PublishableKey,
  PublishableKeyInQuery,
  SecretKey
} from "#rpc/auth"
import { InProcessApi } from "#rpc/in-process"
import { type Door, doors, isOpenTo } from "#rpc/operations"

/** Kinds of callers; keys, tokens and sessions are those of the environment or project in question. */
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
  /** Passes on to the checks of feature, payload and ownership. */
  readonly allowed: ReadonlyArray<Caller>
  /** Status and code for all other callers. */
  readonly otherwise: string
  readonly own?: Partial<Record<Caller, string>>
}

/** The answer for what is not open to a caller or a door, as for what does not exist. */
const closed = "404 not_found"
const invalidKey = "401 invalid_key"
const unauthorized = "401 unauthorized"
const playerBanned = "403 player_banned"
const tokenExpired = "401 token_expired"

/** Callers with a publishable key. */
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
  /** The key is in the query, where none of these callers has it. */
  link: { allowed: [], otherwise: invalidKey },
  /** Rule for an optional player token, which must be valid if present. */
  maybePlayer: {
    allowed: ["publishable", "player"],
    otherwise: invalidKey,
    own: {
      bannedPlayer: playerBanned,
      otherPlayer: unauthorized,
      expiredPlayer: tokenExpired
    }
  },
  /** The same for reads, which are open to banned players. */
  maybePlayerEvenBanned: {
    allowed: ["publishable", "player", "bannedPlayer"],
    otherwise: invalidKey,
    own: { otherPlayer: unauthorized, expiredPlayer: tokenExpired }
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
  /** Open to banned players: reads and appeals. */
  evenBanned: {
    allowed: ["player", "bannedPlayer"],
    otherwise: invalidKey,
    own: {
      publishable: unauthorized,
      otherPlayer: unauthorized,
      expiredPlayer: tokenExpired
    }
  },
  secret: { allowed: ["secret"], otherwise: invalidKey },
  /** A key of either kind; tokens do not matter. */
  anyKey: { allowed: [...withKey, "secret"], otherwise: invalidKey },
  developer: { allowed: ["developer", "otherDeveloper"], otherwise: unauthorized },
  /** Keys of environments do not learn that the path exists. */
  developerOnly: {
    allowed: ["developer", "otherDeveloper"],
    otherwise: unauthorized,
    own: Object.fromEntries([...withKey, "secret", "revoked"].map((caller) => [caller, closed]))
  },
  member: {
    allowed: ["developer"],
    otherwise: unauthorized,
    own: { otherDeveloper: closed }
  }
} as const satisfies Record<string, Rule>

/** Access rule of an endpoint, from its middleware. */
export type Access = keyof typeof rules

const accessOf = (endpoint: HttpApiEndpoint.Top): Access => {
  const behind = (...some: ReadonlyArray<{ readonly key: string }>) =>
    Array.from(endpoint.middlewares).some(({ key }) => some.some((it) => it.key === key))
  if (behind(PlayerToken)) {
    const open = endpoint.method === "GET" || Context.get(endpoint.annotations, OpenToBanned)
    return open ? "evenBanned" : "player"
  }
  if (behind(OptionalPlayerToken)) {
    return endpoint.method === "GET" ? "maybePlayerEvenBanned" : "maybePlayer"
  }
  if (behind(PublishableKeyInQuery)) return "link"
  if (behind(PublishableKey)) return "publishable"
  if (behind(SecretKey)) return "secret"
  if (behind(AnyKey)) return "anyKey"
  if (behind(ProjectMember, EnvironmentMember)) return "member"
  if (behind(SessionOnly)) return "developerOnly"
  return behind(DeveloperSession) ? "developer" : "anyone"
}

/** An endpoint in the matrix. */
export interface Endpoint {
  readonly method: string
  readonly path: string
  readonly access: Access
  /** Doors that open it for calls in the process. */
  readonly openTo: ReadonlyArray<Door>
}

const endpointsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyArray<Endpoint> => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) =>
      found.push({
        method: endpoint.method,
        path: endpoint.path,
        access: accessOf(endpoint),
        openTo: doors.filter((door) => isOpenTo(door, endpoint))
      })
  })
  return found.toSorted((a, b) => a.path.localeCompare(b.path) || a.method.localeCompare(b.method))
}

/** All endpoints of the API, by path. */
export const endpoints: ReadonlyArray<Endpoint> = endpointsOf(Api)

/** Endpoints that only calls in the process reach, by path. */
export const inProcessEndpoints: ReadonlyArray<Endpoint> = endpointsOf(InProcessApi)

/** Status and code with which an endpoint refuses a caller; undefined if the caller is allowed. */
export const refusal = ({ access }: Endpoint, caller: Caller): string | undefined => {
  const rule: Rule = rules[access]
  return rule.allowed.includes(caller) ? undefined : (rule.own?.[caller] ?? rule.otherwise)
}

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const names = Object.keys(callers).filter(isCaller)

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

const doorCells = ({ openTo }: Endpoint): ReadonlyArray<string> =>
  doors.map((door) => (openTo.includes(door) ? "yes" : closed))

/** The matrix as Markdown. */
export const authorizationText = (): string =>
  [
    "# Who may call what",
    "",
    "Generated by `npm run generate`. `yes`: let through to the checks of feature, payload and",
    "ownership; anything else is how the caller is refused, before anything is read or written. The",
    "start of a sign-in by a plain link (GET) takes its `pk_` in the query and from nowhere else.",
    "The last two columns are calls in the process: tools of agents, and `env.svc` of functions.",
    "",
    row(["endpoint", ...names.map((name) => callers[name]), ...doors]),
    row(["endpoint", ...names, ...doors].map(() => "---")),
    ...endpoints.map((endpoint) =>
      row([
        nameOf(endpoint),
        ...names.map((name) => refusal(endpoint, name) ?? "yes"),
        ...doorCells(endpoint)
      ])
    ),
    "",
    "## In the process only",
    "",
    "No HTTP route has these.",
    "",
    row(["endpoint", ...doors]),
    row(["endpoint", ...doors].map(() => "---")),
    ...inProcessEndpoints.map((endpoint) => row([nameOf(endpoint), ...doorCells(endpoint)])),
    ""
  ].join("\n")
