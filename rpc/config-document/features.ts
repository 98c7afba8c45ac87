/**
 * Features of an environment. A feature is off until its switch in the config is true; the error
 * `feature_disabled` names the path of that switch.
 */
import { Record } from "effect"
import { section, toggle } from "./fields.ts"

const features = {
  emailLogin: {
    title: "Email sign-in",
    description:
      "Email sign-up, sign-in, verification, password reset, linking an email to a guest."
  },
  saves: {
    title: "Cloud saves",
    description: "Saves of each player as JSON, on every device that the player signs in on."
  },
  stats: {
    title: "Stats",
    description: "Numbers that players report, such as scores: of all time, by day, week and month."
  },
  multiplayer: {
    title: "Multiplayer",
    description: "Rooms with shared state, matchmaking, and the realtime WebSocket."
  },
  realtimeChannels: {
    title: "Realtime channels",
    description:
      "Channels with messages for everyone in them, such as a chat. The WebSocket connects when this or " +
      "multiplayer is on."
  },
  voice: {
    title: "Voice",
    description: "Voice calls in channels created with voice. Needs realtimeChannels."
  },
  hosting: {
    title: "Hosting",
    description:
      "Deploying the files of the app, and serving them. While off, the app is not served."
  },
  statsVerification: {
    title: "Stats verification",
    description: "Value rules and the verification webhook in integrity.stats. Needs stats."
  }
} as const

/** Name of a feature. */
export type FeatureName = keyof typeof features

/** Features that need another one. */
export const featureDependencies = [
  ["voice", "realtimeChannels"],
  ["statsVerification", "stats"]
] as const

/** A feature with its title and the path of its config switch. */
export interface Feature {
  readonly key: FeatureName
  readonly title: string
  /** What the feature opens to players, in a sentence. */
  readonly description: string
  readonly configPath: string
}

/** All features by name. */
export const featureTable: Readonly<Record<FeatureName, Feature>> = Record.map(
  features,
  ({ description, title }, key) => ({ key, title, description, configPath: `features.${key}` })
)

/** Section `features`: one boolean per feature. */
export const Features = section(
  "Every feature is off until its switch is true.",
  Record.map(features, ({ description }) => toggle(description)),
  "feature"
)
