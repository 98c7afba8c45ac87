/**
 * The features of an environment (spec section 2.2): every one is off until its switch in the
 * config is true, and each names the path of that switch for `feature_disabled`.
 */
import { Record, Schema } from "effect"
import { section, toggle } from "./fields.ts"

const features = {
  emailLogin: {
    title: "Email sign-in",
    opens: "Email sign-up, sign-in, verification, password reset, linking an email to a guest."
  },
  saves: { title: "Cloud saves", opens: "Cloud saves." },
  stats: { title: "Stats", opens: "Submitting and reading stats." },
  multiplayer: { title: "Multiplayer", opens: "Rooms, matchmaking, the realtime WebSocket." },
  realtimeChannels: {
    title: "Realtime channels",
    opens: "Realtime channels; the WebSocket connects when this or multiplayer is on."
  },
  voice: {
    title: "Voice",
    opens: "Voice calls in channels created with voice. Needs realtimeChannels."
  },
  hosting: {
    title: "Hosting",
    opens: "Deploying and serving the app; while off, a hosted app is not served."
  },
  statsVerification: {
    title: "Stats verification",
    opens: "Value rules and the verification webhook in integrity.stats. Needs stats."
  }
} as const

/** A name that `features` may hold. */
export type FeatureName = keyof typeof features

const needs = [
  ["voice", "realtimeChannels"],
  ["statsVerification", "stats"]
] as const

/** One feature, as the gate and `GET /v1/admin/features` name it. */
export interface Feature {
  readonly key: FeatureName
  readonly title: string
  readonly configPath: string
}

/** Every feature by its name. */
export const featureTable: Readonly<Record<FeatureName, Feature>> = Record.map(
  features,
  ({ title }, key) => ({ key, title, configPath: `features.${key}` })
)

/** The section `features`: a boolean for every feature. */
export const Features = section(
  "Every feature is off until its switch is true.",
  Record.map(features, ({ opens }) => toggle(opens)),
  "feature"
).check(
  Schema.makeFilter((on) =>
    needs.flatMap(([name, other]) =>
      on[name] && !on[other]
        ? [{ path: [name], issue: `needs features.${other}: set it to true as well` }]
        : []
    )
  )
)
