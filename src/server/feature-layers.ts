/**
 * All features of the service: one line each. Their layers, and their parts of
 * a player's data, are collected from here.
 */
import { type Context, Effect, Layer } from "effect"
import { ages } from "./features/ages/feature.ts"
import { appeals } from "./features/appeals/feature.ts"
import { audit } from "./features/audit/feature.ts"
import { blocks } from "./features/blocks/feature.ts"
import { channels } from "./features/channels/feature.ts"
import { config } from "./features/config/feature.ts"
import { developers } from "./features/developers/feature.ts"
import { email } from "./features/email/feature.ts"
import { functions } from "./features/functions/feature.ts"
import { hosting } from "./features/hosting/feature.ts"
import { identities } from "./features/identities/feature.ts"
import { live } from "./features/live/feature.ts"
import { matchmaking } from "./features/matchmaking/feature.ts"
import { moderation } from "./features/moderation/feature.ts"
import { money } from "./features/money/feature.ts"
import { news } from "./features/news/feature.ts"
import { oauth } from "./features/oauth/feature.ts"
import { peers } from "./features/peers/feature.ts"
import { playerData } from "./features/player-data/feature.ts"
import { players } from "./features/players/feature.ts"
import { projects } from "./features/projects/feature.ts"
import { rooms } from "./features/rooms/feature.ts"
import { saves } from "./features/saves/feature.ts"
import { sessions } from "./features/sessions/feature.ts"
import { share } from "./features/share/feature.ts"
import { stats } from "./features/stats/feature.ts"
import { system } from "./features/system/feature.ts"
import { transfer } from "./features/transfer/feature.ts"
import { voice } from "./features/voice/feature.ts"
import { Frames } from "./gateway/frame-handlers.ts"
import { PlayerParts, type PlayerTable } from "./platform/player-parts.ts"

const features = [
  ages,
  appeals,
  audit,
  blocks,
  channels,
  config,
  developers,
  email,
  functions,
  hosting,
  identities,
  live,
  matchmaking,
  moderation,
  money,
  news,
  oauth,
  peers,
  playerData,
  players,
  projects,
  rooms,
  saves,
  sessions,
  share,
  stats,
  system,
  transfer,
  voice
] as const

/** The layers that a feature may have. */
type Kind =
  | "entityServices"
  | "frameServices"
  | "pages"
  | "repositories"
  | "routes"
  | "routeServices"
  | "services"

/** One layer of each feature; an empty one of a feature that has none. */
const each = <
  K extends Kind,
  const F extends ReadonlyArray<
    Readonly<Partial<Record<Kind, Layer.Any>>> & { readonly frames?: unknown }
  >
>(
  all: F,
  kind: K
) =>
  all.map((feature) => feature[kind] ?? Layer.empty) as {
    -readonly [I in keyof F]: F[I] extends Readonly<Record<K, infer L>> ? L : Layer.Layer<never>
  }

/** Storage of the features. */
export const FeatureRepositories = Layer.mergeAll(...each(features, "repositories"))

/** Services that handlers, frames and entities share. */
export const FeatureServices = Layer.mergeAll(...each(features, "services"))

/** Services that only entities use. */
export const FeatureEntityServices = Layer.mergeAll(...each(features, "entityServices"))

/** Services that only routes use. */
export const FeatureRouteServices = Layer.mergeAll(...each(features, "routeServices"))

/** Routes beside those of the API. */
export const FeaturePages = Layer.mergeAll(...each(features, "pages"))

const frames = features.flatMap((feature) => ("frames" in feature ? [feature.frames] : []))

/** The services that the effects of frames need. */
type FrameServices<Make = (typeof frames)[number]> = Make extends (
  services: Context.Context<infer R>,
  ...rest: never
) => unknown
  ? R
  : never

/** Handlers of the frames of sockets. */
export const FeatureFrames = Frames.layer<FrameServices>(frames)

/** Services that only frames use. */
export const FeatureFrameServices = Layer.mergeAll(...each(features, "frameServices"))

/** What each feature stores about a player. */
const playerDataParts = features.flatMap((feature) => ("player" in feature ? [feature.player] : []))

/** Every table that holds player ids. A test fails if a table of the database is missing. */
export const playerTables = playerDataParts.flatMap<PlayerTable>(({ tables }) => [...tables])

const PlayerPartsLive = Layer.effect(
  PlayerParts,
  Effect.all(playerDataParts.map(({ make }) => make))
)

/** Handlers of the API, and the features' own background work. */
export const FeatureRoutes = Layer.mergeAll(...each(features, "routes")).pipe(
  Layer.provide(PlayerPartsLive)
)
