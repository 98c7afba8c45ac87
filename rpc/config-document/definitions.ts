/**
 * Public part of an environment's config, for pages and apps. It omits integrity checks, origins,
 * redirect URLs and limits.
 */
import { Schema, Struct } from "effect"
import type { EnvironmentConfig } from "./document.ts"
import { Features } from "./features.ts"
import { type Mode, modesOf } from "./multiplayer.ts"
import { HostPower, VoteOp } from "./authority.ts"
import { text } from "./text.ts"

const Title = text("Display text: one text, or one per language code.")

/** Public definition of a stat. */
const StatDefinition = Schema.Struct({
  key: Schema.String,
  title: Title,
  aggregation: Schema.Literals(["sum", "max", "min", "latest"])
})

/** Public definition of the rights that a mode gives. */
const AuthorityDefinition = Schema.Struct({
  host: Schema.Array(HostPower),
  matchedHost: Schema.Array(HostPower),
  votes: Schema.Array(
    Schema.Struct({
      op: VoteOp,
      share: Schema.Finite,
      minVoters: Schema.Int,
      seconds: Schema.Int,
      cooldownSeconds: Schema.Int
    })
  )
})

/** Public definition of a mode; `p2p` is present in peer-to-peer modes only. */
const ModeDefinition = Schema.Struct({
  key: Schema.String,
  title: Title,
  minPlayers: Schema.Int,
  maxPlayers: Schema.Int,
  fillTimeoutSeconds: Schema.Int,
  transport: Schema.Literals(["server", "p2p"]),
  p2p: Schema.optionalKey(Schema.Struct({ maxPlayers: Schema.Int, relayOnly: Schema.Boolean })),
  /** The rights that the mode gives; absent without any. */
  authority: Schema.optionalKey(AuthorityDefinition),
  /** Absent without teams, like `assign`. */
  teams: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ key: Schema.String, title: Title, min: Schema.Int, max: Schema.Int })
    )
  ),
  assign: Schema.optionalKey(Schema.Literals(["auto", "match", "free", "host"]))
})

/** Response of `GET /v1/gamedata/definitions`. */
export const Definitions = Schema.Struct({
  configVersion: Schema.Int,
  resetTimeZone: Schema.String,
  features: Schema.toType(Features),
  stats: Schema.Array(StatDefinition),
  modes: Schema.Array(ModeDefinition),
  providers: Schema.Array(Schema.String),
  share: Schema.Struct({
    images: Schema.Boolean,
    links: Schema.Boolean,
    tracking: Schema.Boolean,
    inAppBrowser: Schema.Boolean
  }),
  audience: Schema.Literals(["general", "mixed", "kids"]),
  news: Schema.Struct({ optIn: Schema.Boolean })
}).annotate({
  identifier: "Definitions",
  description: "The public part of the environment's config."
})
export type Definitions = typeof Definitions.Type

const modeFields = [
  "key",
  "title",
  "minPlayers",
  "maxPlayers",
  "fillTimeoutSeconds",
  "transport"
] as const

/** The public rights and teams of a mode, as far as it declares them. */
const rightsOf = ({ assign, authority, teams }: Mode) => {
  const { host, matchedHost, votes } = authority
  return {
    ...(host.length + matchedHost.length + votes.length === 0 ? {} : { authority }),
    ...(teams.length === 0 ? {} : { teams, assign })
  }
}

/** Whether sign-up screens may offer news; never for the audience `kids`. */
export const newsOffered = ({ audience, svcNews }: EnvironmentConfig): boolean =>
  svcNews.optIn && audience !== "kids"

/** Returns the public definitions of a config. */
export const publicConfig = (config: EnvironmentConfig, configVersion: number): Definitions => ({
  configVersion,
  resetTimeZone: config.resetTimeZone,
  features: config.features,
  stats: config.stats.map(Struct.pick(["key", "title", "aggregation"])),
  modes: modesOf(config).map((mode) => ({
    ...Struct.pick(mode, mode.transport === "p2p" ? [...modeFields, "p2p"] : modeFields),
    ...rightsOf(mode)
  })),
  providers: Object.entries(config.auth.providers).flatMap(([name, { enabled }]) =>
    enabled ? [name] : []
  ),
  share: {
    images: config.share.images.enabled,
    links: config.share.links.enabled,
    tracking: config.share.tracking.enabled,
    inAppBrowser: config.share.inAppBrowser.enabled
  },
  audience: config.audience,
  news: { optIn: newsOffered(config) }
})
