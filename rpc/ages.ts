/**
 * Age bands and what follows from them (spec section 2.2, decisions 3.3.13). One place derives the
 * capabilities; everything that depends on age asks here.
 */
import type { EnvironmentConfig } from "./config/document.ts"

/** Under 13, under 18, and everybody else. */
export type AgeBand = "child" | "teen" | "adult"

/** The band a player counts as: `kids` knows only children, `mixed` until a player has declared. */
export const ageBandOf = (
  audience: EnvironmentConfig["audience"],
  declared: AgeBand | null
): AgeBand => {
  if (audience === "kids") return "child"
  return declared ?? (audience === "mixed" ? "child" : "adult")
}

/** What a player of a band may do. */
export interface Capabilities {
  /** May be seen by other players' devices: without it, media and peers go through a relay. */
  readonly directConnections: boolean
  /** May talk where other players make the rules: without it, only server-made channels are open. */
  readonly openChat: boolean
}

export const capabilitiesOf = (band: AgeBand): Capabilities => ({
  directConnections: band !== "child",
  openChat: band !== "child"
})
