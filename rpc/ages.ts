/**
 * Age bands and what follows from them (spec section 2.2, decisions 3.3.13). One place derives the
 * capabilities; everything that depends on age asks here.
 */
import { Schema } from "effect"
import type { EnvironmentConfig } from "./config/document.ts"

/** Under 13, under 18, and everybody else. */
export const AgeBand = Schema.Literals(["child", "teen", "adult"])
export type AgeBand = typeof AgeBand.Type

/** The band a player counts as: `kids` knows only children, `mixed` until a player has declared. */
export const ageBandOf = (
  audience: EnvironmentConfig["audience"],
  declared: AgeBand | null
): AgeBand => {
  if (audience === "kids") return "child"
  return declared ?? (audience === "mixed" ? "child" : "adult")
}

/** What a player of a band may do. */
export const Capabilities = Schema.Struct({
  /** May be seen by other players' devices: without it, media and peers go through a relay. */
  directConnections: Schema.Boolean,
  /** May join calls; without it, only those of channels that the server has made. */
  voice: Schema.Boolean,
  /** May talk where other players make the rules: without it, only server-made channels are open. */
  openChat: Schema.Boolean,
  /** The name may stand on what is shared outside of the app. */
  showName: Schema.Boolean,
  /** May be asked whether it wants news by mail. */
  news: Schema.Boolean
})
export type Capabilities = typeof Capabilities.Type

export const capabilitiesOf = (band: AgeBand): Capabilities => {
  const grown = band !== "child"
  return { directConnections: grown, voice: grown, openChat: grown, showName: grown, news: grown }
}

/** A player's age group: the one that counts, and the one that was declared. */
export const AgeProfile = Schema.Struct({
  ageBand: AgeBand,
  declaredAgeBand: Schema.NullOr(AgeBand),
  capabilities: Capabilities
})
export type AgeProfile = typeof AgeProfile.Type

/** The age profile of a player. */
export const ageProfileOf = (
  audience: EnvironmentConfig["audience"],
  declaredAgeBand: AgeBand | null
): AgeProfile => {
  const ageBand = ageBandOf(audience, declaredAgeBand)
  return { ageBand, declaredAgeBand, capabilities: capabilitiesOf(ageBand) }
}
