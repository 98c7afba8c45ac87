/** Settings of what the deployment offers. */
import { Record, Schema } from "effect"
import { featureTable } from "#rpc/config-document/features"
import { setting } from "./table.ts"
import { listOf, OnOff } from "./values.ts"

const allFeatures = Record.keys(featureTable)

export const offered = {
  demoGames: setting("SVC_DEMO_GAMES", OnOff, "on")`
    Outside production, deploys two demo games to a project of their own. \`off\` does not.`,
  features: setting(
    "SVC_FEATURES",
    listOf(Schema.Literals(allFeatures)),
    allFeatures.join(","),
    "all"
  )`
    The features that this deployment offers, comma-separated; no config can turn on another.`
}

export const throttling = {
  throttles: setting("SVC_THROTTLES", OnOff, "on")`
    \`off\` lifts the request throttles, for benchmarks and tests.`
}
