/** All features of the API, in the order of its document: one line each. */
import { type Array, Context } from "effect"
import { type HttpApi, type HttpApiEndpoint, type HttpApiGroup, OpenApi } from "effect/http-api"
import { PlayerRate } from "./auth.ts"
import { GroupSection, type Section, sections } from "./feature.ts"
import { agesFeature } from "./ages.ts"
import { appealsFeature } from "./appeals.ts"
import { auditFeature } from "./audit.ts"
import { blocksFeature } from "./blocks.ts"
import { channelsFeature } from "./channels/feature.ts"
import { configFeature } from "./config.ts"
import { developersFeature } from "./developers.ts"
import { emailFeature } from "./email.ts"
import { functionsFeature } from "./functions/feature.ts"
import { hostingFeature } from "./hosting/feature.ts"
import { identitiesFeature } from "./identities.ts"
import { liveFeature } from "./live.ts"
import { matchmakingFeature } from "./matchmaking.ts"
import { moderationFeature } from "./moderation.ts"
import { moneyFeature } from "./money.ts"
import { newsFeature } from "./news.ts"
import { oauthFeature } from "./oauth/feature.ts"
import { peersFeature } from "./peers.ts"
import { playerDataFeature } from "./player-data.ts"
import { playersFeature } from "./players.ts"
import { projectsFeature } from "./projects/feature.ts"
import { roomsFeature } from "./rooms/feature.ts"
import { savesFeature } from "./saves.ts"
import { sessionsFeature } from "./sessions.ts"
import { shareFeature } from "./share/feature.ts"
import { statsFeature } from "./stats.ts"
import { systemFeature } from "./system.ts"
import { transferFeature } from "./transfer.ts"
import { voiceFeature } from "./voice.ts"

const owners = [
  sessionsFeature,
  emailFeature,
  projectsFeature,
  liveFeature,
  developersFeature,
  configFeature,
  functionsFeature,
  hostingFeature,
  oauthFeature,
  transferFeature,
  playersFeature,
  identitiesFeature,
  agesFeature,
  blocksFeature,
  newsFeature,
  appealsFeature,
  moderationFeature,
  roomsFeature,
  channelsFeature,
  matchmakingFeature,
  peersFeature,
  voiceFeature,
  savesFeature,
  statsFeature,
  shareFeature,
  auditFeature,
  moneyFeature,
  systemFeature
] as const

type Intersection<U> = (U extends unknown ? (it: U) => void : never) extends (it: infer I) => void
  ? I
  : never
type Exported = Intersection<NonNullable<(typeof owners)[number]["exported"]>>

/** What the export of a player's data says. */
const exported: Exported = Object.assign({}, ...owners.map((each) => each.exported))

export const features = [...owners, playerDataFeature(exported)] as const

type Feature = (typeof features)[number]

/** Groups of all features. */
export const groups = features.flatMap<Feature["groups"][number]>((each) => each.groups)

/** Groups that only calls in the process reach. */
export const inProcessGroups = features.flatMap<Feature["inProcess"][number]>(
  (each) => each.inProcess
)

/** Words of the rate limits kept for each player. */
export const playerLimits: ReadonlySet<string> = new Set([
  ...features.flatMap((each) => each.playerLimits),
  ...groups.flatMap(({ endpoints }) =>
    Object.values<HttpApiEndpoint.Top>(endpoints).flatMap(
      ({ annotations }) => Context.get(annotations, PlayerRate)?.name ?? []
    )
  )
])

/** Adds groups to an API. */
export const addAll = <
  Id extends string,
  Own extends HttpApiGroup.Constraint,
  G extends HttpApiGroup.Constraint
>(
  api: HttpApi.HttpApi<Id, Own>,
  all: ReadonlyArray<G>
): HttpApi.HttpApi<Id, Own | G> => api.add(...(all as Array.NonEmptyReadonlyArray<G>))

const isSection = (name: string): name is Section => name in sections

const titlesOf = (section: Section): ReadonlyArray<string> =>
  groups.flatMap(({ annotations }) => {
    const title = Context.getOrUndefined(annotations, OpenApi.Title)
    return Context.get(annotations, GroupSection) === section && title !== undefined ? [title] : []
  })

/** Sections of the API page: the vendor extension `x-tagGroups`, which Scalar and Redoc read. */
export const tagGroups = Object.keys(sections)
  .filter(isSection)
  .map((section) => ({ name: sections[section], tags: titlesOf(section) }))
