/**
 * Public part of an environment's config, for pages and apps. It omits integrity checks, origins,
 * redirect URLs and limits.
 */
import { Schema, Struct } from "effect"
import type { EnvironmentConfig } from "./document.ts"
import { Features } from "./features.ts"
import { modesOf } from "./multiplayer.ts"
import { text } from "./text.ts"

const Title = text("Display text: one text, or one per language code.")

/** Public definition of a stat. */
const StatDefinition = Schema.Struct({
  key: Schema.String,
  title: Title,
  aggregation: Schema.Literals(["sum", "max", "min", "latest"])
})

/** Public definition of a mode; `p2p` is present in peer-to-peer modes only. */
const ModeDefinition = Schema.Struct({
  key: Schema.String,
  title: Title,
  minPlayers: Schema.Int,
  maxPlayers: Schema.Int,
  fillTimeoutSeconds: Schema.Int,
  transport: Schema.Literals(["server", "p2p"]),
  p2p: Schema.optionalKey(Schema.Struct({ maxPlayers: Schema.Int, relayOnly: Schema.Boolean }))
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

/** Whether sign-up screens may offer news; never for the audience `kids`. */
export const newsOffered = ({ audience, svcNews }: EnvironmentConfig): boolean =>
  svcNews.optIn && audience !== "kids"

/** Returns the public definitions of a config. */
export const publicConfig = (config: EnvironmentConfig, configVersion: number): Definitions => ({
  configVersion,
  resetTimeZone: config.resetTimeZone,
  features: config.features,
  stats: config.stats.map(Struct.pick(["key", "title", "aggregation"])),
  modes: modesOf(config).map((mode) =>
    Struct.pick(mode, mode.transport === "p2p" ? [...modeFields, "p2p"] : modeFields)
  ),
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
