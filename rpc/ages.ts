/**
 * Age bands and what follows from them (spec section 2.2, decisions 3.2.13). One place derives the
 * capabilities; everything that depends on age asks here.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import type { EnvironmentConfig } from "./config-document/document.ts"
import { AgeChangeNotAllowed, NotFound, wire } from "./errors/codes.ts"
import { ages as limits } from "./limits.ts"

/** Under 13, under 18, and everybody else; the strictest first. */
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

const Years = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: limits.yearsMax }))

/**
 * What the platform of a device says of its user's age: Play Age Signals, Declared Age Range. The
 * bounds are years, both inclusive; without `upperBound` the range is open.
 */
export const AgeSignal = Schema.Struct({
  platform: Schema.Literals(["ios", "android", "web"]),
  /**
   * `declared`, `verified`: the range is what was declared, or what was checked. `supervised`: a
   * guardian keeps the account and has set the range; `_pending` and `_denied` are about the guardian's
   * consent to a change of the app, which is not about age. `declined`, `unknown`: nothing is said.
   */
  status: Schema.Literals([
    "declared",
    "verified",
    "supervised",
    "supervised_pending",
    "supervised_denied",
    "declined",
    "unknown"
  ]),
  lowerBound: Schema.optionalKey(Years),
  upperBound: Schema.optionalKey(Years),
  /** Who says so; it counts alike. */
  source: Schema.optionalKey(Schema.Literals(["selfDeclared", "guardianDeclared", "platform"])),
  /** A guardian keeps the account, whatever the status. */
  supervised: Schema.optionalKey(Schema.Boolean)
}).check(
  Schema.makeFilter(({ lowerBound, upperBound }) =>
    lowerBound === undefined || upperBound === undefined || lowerBound <= upperBound
      ? undefined
      : { path: ["upperBound"], issue: "Expected at least lowerBound" }
  )
)
export type AgeSignal = typeof AgeSignal.Type

/** What a signal can say: that somebody is young. */
export const SignalledBand = Schema.Literals(["child", "teen"])
type SignalledBand = typeof SignalledBand.Type

const ends = { child: 12, teen: 17 } as const

const bandUpTo = (years: number): SignalledBand | undefined => {
  if (years <= ends.child) return "child"
  return years <= ends.teen ? "teen" : undefined
}

/**
 * The age group of which a signal says that the player is no older; undefined when it does not say.
 * The upper bound decides. Where it is missing, the player may be of any age from the lower bound on;
 * but one whose account a guardian keeps is taken to be as young as the bounds allow.
 */
export const bandOfSignal = (signal: AgeSignal): SignalledBand | undefined => {
  const { lowerBound = 0, status, supervised, upperBound } = signal
  switch (status) {
    case "declined":
    case "unknown":
      return undefined
    case "declared":
    case "verified":
      if (upperBound !== undefined) return bandUpTo(upperBound)
      return supervised === true ? bandUpTo(lowerBound) : undefined
    case "supervised":
    case "supervised_pending":
    case "supervised_denied":
      return bandUpTo(upperBound ?? lowerBound)
  }
}

/** The player's own age group: only ever made stricter, but for the first declaration. */
export class AgesApi extends HttpApiGroup.make("ages")
  .add(
    HttpApiEndpoint.post("signal", "/players/me/age-signal", {
      payload: AgeSignal,
      success: AgeProfile,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "What the platform says of the player's age; only makes stricter"),
    HttpApiEndpoint.get("profile", "/social/profile", {
      success: AgeProfile,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "The player's age group, and what follows from it"),
    HttpApiEndpoint.put("declare", "/social/age", {
      payload: Schema.Struct({ band: AgeBand }),
      success: AgeProfile,
      error: [wire(AgeChangeNotAllowed), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Declare the age group; once declared, only a stricter one")
  )
  .prefix("/v1")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}
