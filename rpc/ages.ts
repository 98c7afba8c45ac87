/**
 * Age bands and the capabilities that they allow. Only this module derives capabilities; every age
 * check uses it.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import type { EnvironmentConfig } from "./config-document/document.ts"
import { AgeChangeNotAllowed, NotFound, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"

const yearsMax = 150

/** Age bands, the strictest first: under 13, under 18, and older. */
export const AgeBand = Schema.Literals(["child", "teen", "adult"])
export type AgeBand = typeof AgeBand.Type

/**
 * The effective age band. With audience `kids` everyone is a child; with `mixed`, a player without a
 * declaration is.
 */
export const ageBandOf = (
  audience: EnvironmentConfig["audience"],
  declared: AgeBand | null
): AgeBand => {
  if (audience === "kids") return "child"
  return declared ?? (audience === "mixed" ? "child" : "adult")
}

/** Permissions of the players of an age band. */
export const Capabilities = Schema.Struct({
  /**
   * Whether other players' devices may see the IP address. If false, media and peers go through a
   * relay.
   */
  directConnections: Schema.Boolean,
  /** Whether the player may join all calls. If false, only calls of server-made channels. */
  voice: Schema.Boolean,
  /** Whether the player may join client-made channels. If false, only server-made ones. */
  openChat: Schema.Boolean,
  /** Whether the name may appear on content shared outside the app. */
  showName: Schema.Boolean,
  /** Whether the service may ask for consent to news by mail. */
  news: Schema.Boolean
}).annotate({ identifier: "Capabilities", description: "What players of an age band may do." })
export type Capabilities = typeof Capabilities.Type

export const capabilitiesOf = (band: AgeBand): Capabilities => {
  const allowed = band !== "child"
  return {
    directConnections: allowed,
    voice: allowed,
    openChat: allowed,
    showName: allowed,
    news: allowed
  }
}

/** The effective age band of a player, and the declared one. */
export const AgeProfile = Schema.Struct({
  ageBand: AgeBand,
  declaredAgeBand: Schema.NullOr(AgeBand),
  capabilities: Capabilities
}).annotate({
  identifier: "AgeProfile",
  description: "The effective age band of a player, and the declared one."
})
export type AgeProfile = typeof AgeProfile.Type

/** Derives the age profile of a player. */
export const ageProfileOf = (
  audience: EnvironmentConfig["audience"],
  declaredAgeBand: AgeBand | null
): AgeProfile => {
  const ageBand = ageBandOf(audience, declaredAgeBand)
  return { ageBand, declaredAgeBand, capabilities: capabilitiesOf(ageBand) }
}

const Years = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: yearsMax }))

/**
 * An age report of the device's platform: Play Age Signals or Declared Age Range. The bounds are in
 * years, both inclusive. Without `upperBound` the range is open.
 */
export const AgeSignal = Schema.Struct({
  platform: Schema.Literals(["ios", "android", "web"]),
  /**
   * `declared`, `verified`: someone declared or verified the range. `supervised`: a guardian manages
   * the account and has set the range. `_pending` and `_denied` concern the guardian's consent to a
   * change of the app and say nothing about age. `declined`, `unknown`: no information.
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
  /** Source of the reported age; all sources count the same. */
  source: Schema.optionalKey(Schema.Literals(["selfDeclared", "guardianDeclared", "platform"])),
  /** A guardian manages the account, with any status. */
  supervised: Schema.optionalKey(Schema.Boolean)
}).check(
  Schema.makeFilter(({ lowerBound, upperBound }) =>
    lowerBound === undefined || upperBound === undefined || lowerBound <= upperBound
      ? undefined
      : { path: ["upperBound"], issue: "Expected at least lowerBound" }
  )
)
export type AgeSignal = typeof AgeSignal.Type

/** Age bands that a signal can prove: the young ones. */
export const SignalledBand = Schema.Literals(["child", "teen"])
type SignalledBand = typeof SignalledBand.Type

const lastYears = { child: 12, teen: 17 } as const

const bandUpTo = (years: number): SignalledBand | undefined => {
  if (years <= lastYears.child) return "child"
  return years <= lastYears.teen ? "teen" : undefined
}

/**
 * The strictest age band that a signal proves, or undefined. The upper bound decides. Without one the
 * player may be of any age from the lower bound up; a supervised player counts as the lower bound.
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

/** The age band of the signed-in player. After the first declaration it only becomes stricter. */
export class AgesApi extends group(
  "ages",
  "players",
  "Ages",
  "The age band of the signed-in player, and the features that it allows."
)
  .add(
    HttpApiEndpoint.post("signal", "/players/me/age-signal", {
      payload: AgeSignal,
      success: AgeProfile,
      error: wire(NotFound)
    }).annotate(
      OpenApi.Summary,
      "Report the platform's age signal; it only makes the age band stricter"
    ),
    HttpApiEndpoint.get("profile", "/social/profile", {
      success: AgeProfile,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Get the player's age band and capabilities"),
    HttpApiEndpoint.put("declare", "/social/age", {
      payload: Schema.Struct({ band: AgeBand }),
      success: AgeProfile,
      error: [wire(AgeChangeNotAllowed), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Declare the age band; later declarations must be stricter")
  )
  .prefix("/v1")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

export const agesFeature = feature({
  word: "ages",
  groups: [AgesApi],
  exported: {
    /** `signalledAgeBand` is the strictest age band that a platform has reported. */
    age: Schema.Struct({ ...AgeProfile.fields, signalledAgeBand: Schema.NullOr(AgeBand) })
  }
})
