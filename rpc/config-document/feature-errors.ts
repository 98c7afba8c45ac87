/**
 * Errors of the features that an environment cannot use. HTTP, socket, native RPC, functions and agents
 * all look here: a feature that the deployment does not offer is off, whatever the config says. Pure.
 */
import { Record } from "effect"
import { FeatureDisabled, FeatureUnavailable } from "../errors/codes.ts"
import { featureDependencies, type FeatureName, featureTable } from "./features.ts"

/** Error of a feature that is off, or that the deployment does not offer. */
export type FeatureError = FeatureDisabled | FeatureUnavailable

/** Errors by feature; a feature without one can be used. */
export type FeatureErrors = ReadonlyMap<FeatureName, FeatureError>

/** Returns the errors of an environment with these switches, in a deployment that offers `offered`. */
export const featureErrors = (
  switches: Readonly<Record<FeatureName, boolean>>,
  offered: ReadonlySet<FeatureName>
): FeatureErrors => {
  const errors = new Map<FeatureName, FeatureError>()
  for (const feature of Record.keys(featureTable)) {
    if (!offered.has(feature)) {
      errors.set(feature, new FeatureUnavailable({ details: { features: [feature] } }))
    } else if (!switches[feature]) {
      const { configPath } = featureTable[feature]
      errors.set(feature, new FeatureDisabled({ details: { feature, configPath } }))
    }
  }
  for (const [feature, needed] of featureDependencies) {
    const error = errors.get(needed)
    if (error !== undefined && !errors.has(feature)) errors.set(feature, error)
  }
  return errors
}
