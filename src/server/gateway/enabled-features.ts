/** What an environment offers over the socket, and what a frame needs of it (spec section 4.5). */
import { type FeatureName, featureTable } from "#rpc/config-document/features"
import { FeatureDisabled } from "#rpc/errors/codes"

export interface EnabledFeatures {
  readonly rooms: boolean
  readonly channels: boolean
  /** Is there anything for a socket to do? */
  readonly any: boolean
}

const disabled = (feature: FeatureName): FeatureDisabled =>
  new FeatureDisabled({ details: { feature, configPath: featureTable[feature].configPath } })

/** Why a frame of this type has no place here, if so. */
export const featureError = (
  { channels, rooms }: EnabledFeatures,
  t: string
): FeatureDisabled | undefined => {
  if (t === "ping") return undefined
  if (t.startsWith("channel")) return channels ? undefined : disabled("realtimeChannels")
  return rooms ? undefined : disabled("multiplayer")
}
